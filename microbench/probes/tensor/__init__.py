"""Tensor cores: mma.sync on every architecture since Ampere, wgmma on Hopper, tcgen05 on Blackwell."""
