"""Tensor memory of Blackwell: to registers and back, and from shared memory."""
