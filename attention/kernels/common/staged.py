"""What the kernels of Volta and Turing have alike: K and V by way of registers, and float16 alone. No torch here."""

from dataclasses import dataclass

from attention.kernels.common.family import feature_defines, refuses, schedule_defines
from attention.problem import AttentionProblem
from attention.variant import Config, CudaBuild
from microbench.machine.arch import Arch, Limits


@dataclass(frozen=True, kw_only=True)
class Shape:
    """One tile: head dim as held, warps of a block, query rows of a warp, keys of a tile, blocks of a row's keys."""

    head_dim: int
    warps: int
    warp_rows: int
    tile_keys: int
    key_splits: int

    @property
    def tile_rows(self) -> int:
        """Query rows of one block."""
        return self.warps * self.warp_rows

    @property
    def threads(self) -> int:
        """Threads of one block."""
        return 32 * self.warps

    @property
    def group(self) -> int:
        """Query heads that share a tile's rows."""
        return 1

    @property
    def partial_floats(self) -> int:
        """What one of the blocks of a row's keys leaves (key_splits.cuh).

        Its outputs, and of each thread two maxima and two sums for every 16 rows of its warp.
        """
        return self.tile_rows * self.head_dim + self.threads * self.warp_rows // 16 * 4

    @property
    def smem_bytes(self) -> int:
        """What a block asks for of shared memory."""
        raise NotImplementedError


def refuses_all_but_float16(problem: AttentionProblem, arch: Arch) -> str | None:
    """What no forward of ours is written for, and bfloat16, which these tensor cores do not multiply."""
    if problem.dtype == "bfloat16":
        return f"serves float16: {arch.generation} multiplies no bfloat16; cast with .to(torch.float16)"
    if problem.dtype != "float16":
        return f"serves float16, not {problem.dtype}"
    return refuses(problem, arch)


def blocks(shape: Shape, limits: Limits) -> int:
    """How many blocks an SM holds: as shared memory has room, and of eight warps, whose registers fill it."""
    return min(8 // shape.warps, limits.smem_bytes // shape.smem_bytes)


def build(kernel: str, problem: AttentionProblem, shape: Shape, config: Config, axes: tuple[str, ...]) -> CudaBuild:
    """What config.cuh asks of NVRTC, the settled `axes` of a configuration among it, and what a launch takes."""
    defines = (
        ("HEAD_DIM", shape.head_dim),
        ("WARPS", shape.warps),
        ("ROWS_PER_WARP", shape.warp_rows),
        *((axis.upper(), config[axis]) for axis in axes),
        ("KEY_PARTS", int(shape.key_splits > 1)),
        *feature_defines(problem),
        *schedule_defines(problem),
    )
    return CudaBuild(kernel, defines, shape.threads, shape.smem_bytes)
