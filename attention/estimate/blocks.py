"""Which blocks an SM holds, how many tiles of keys each works through, and when the last one ends."""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from attention.errors import ProblemError
from attention.kernels.common.family import row_tiles, section_of
from attention.problem import AttentionProblem
from attention.variant import CudaBuild
from microbench.machine.arch import Arch
from microbench.sass.cubin import Resources

REGISTER_UNIT = 256  # of a warp: what registers are given out in (CUDA occupancy calculator, compute capability 7 to 9)
# Blocks dealt one by one: beyond, half of the longest is less than 0.3 % of the end, and dealing takes minutes.
MOST_DEALT = 1 << 18
MOST_ROWS = 1 << 22
SYSTEM_BYTES = 1024  # of shared memory, by block, from compute capability 8.0 on (CUDA C++ guide)


@dataclass(frozen=True)
class Tiles:
    """Of one block: tiles whose keys all its rows see, and tiles that the mask or the end of the keys cuts."""

    seen: int
    masked: int


def resident(build: CudaBuild, resources: Resources, arch: Arch) -> int:
    """How many blocks of a kernel one SM holds at a time."""
    limits, warps = arch.limits, build.threads // 32
    assert limits is not None
    registers = -(-32 * resources.registers // REGISTER_UNIT) * REGISTER_UNIT * warps
    taken = build.smem_bytes + resources.smem_bytes + (SYSTEM_BYTES if arch.compute_capability >= (8, 0) else 0)
    return min(limits.registers // registers, limits.smem_bytes // taken, limits.max_warps // warps, limits.max_blocks)


def served(problem: AttentionProblem) -> None:
    """Raises ProblemError for what is not full or top-left causal attention of equal lengths."""
    if problem.features or problem.varlen or problem.alignment != "top_left" or problem.window != (-1, -1):
        raise ProblemError(f"The static estimate knows full and top-left causal attention alone, not {problem}.")
    if problem.seq_q > MOST_ROWS:
        raise ProblemError(f"The static estimate serves up to {MOST_ROWS} queries, not {problem.seq_q}.")


def tiles_of(problem: AttentionProblem, row: int, rows: int, columns: int) -> Tiles:
    """Tiles of the block whose first row is `row`: as pipeline.cuh deals them, the last ones masked."""
    keys = min(problem.seq_kv, row + rows) if problem.causal else problem.seq_kv
    tiles = -(-keys // columns)
    whole = min(row // columns, tiles - 1) if problem.causal else tiles - 1
    return Tiles(whole, tiles - whole)


def parts_of(tiles: Tiles, most: int) -> tuple[Tiles, ...]:
    """The tiles of up to `most` blocks that share them: as key_splits.cuh deals them, the masked ones last."""
    count = tiles.seen + tiles.masked
    parts = max(1, min(most, count))
    edges = [count * number // parts for number in range(parts + 1)]
    seen = [min(edge, tiles.seen) for edge in edges]
    return tuple(
        Tiles(seen[at + 1] - seen[at], edges[at + 1] - edges[at] - (seen[at + 1] - seen[at])) for at in range(parts)
    )


def launched(problem: AttentionProblem, rows: int) -> Iterator[int]:
    """The first row of each tile, in order of its number (work.cuh): causal ones longest first, by sections."""
    count, heads = row_tiles(problem, rows), problem.batch * problem.heads_q
    if not problem.causal:
        yield from (tile * rows for _ in range(heads) for tile in range(count))
        return
    section = section_of(problem)
    for first in range(0, heads, section):
        width = min(section, heads - first)
        yield from (tile * rows for tile in reversed(range(count)) for _ in range(width))


def last_end(cycles: Iterator[float], slots: int) -> float:
    """When the last block ends, where each takes the first place that is free."""
    places: list[float] = []
    for each in cycles:
        heapq.heappush(places, each if len(places) < slots else heapq.heappop(places) + each)
    return max(places)


def late_end(of_row: Iterable[Iterable[float]], heads: int, slots: int) -> float:
    """last_end() of so many blocks that their order is no matter: it lies within half of the longest of this.

    No place idles before the last block has begun, so that the end is the mean place's and at most the longest more.
    """
    each = [cycles for parts in of_row for cycles in parts]
    return heads * sum(each) / slots + max(each) / 2
