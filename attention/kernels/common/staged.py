"""What the kernels of Volta and Turing have alike: K and V by way of registers, and float16 alone. No torch here."""

from typing import Protocol

from attention.kernels.common.family import refuses
from attention.problem import AttentionProblem
from microbench.machine.arch import Arch, Limits

STEP = 16  # of head dims


class Shape(Protocol):
    """Of a compiled kernel's tile: the warps of a block, and the bytes of shared memory that it asks for."""

    @property
    def warps(self) -> int: ...

    @property
    def smem_bytes(self) -> int: ...


def held_head_dim(head_dim: int) -> int:
    """The head dim that shared memory and products have."""
    return -(-head_dim // STEP) * STEP


def refuses_bfloat16(problem: AttentionProblem, arch: Arch) -> str | None:
    """What no forward of ours is written for, and bfloat16, which these tensor cores do not multiply."""
    if problem.dtype == "bfloat16":
        return f"serves float16: {arch.generation} multiplies no bfloat16; cast with .to(torch.float16)"
    return refuses(problem, arch)


def blocks(shape: Shape, limits: Limits) -> int:
    """How many blocks an SM holds: as shared memory has room, and of eight warps, whose registers fill it."""
    return min(8 // shape.warps, limits.smem_bytes // shape.smem_bytes)
