"""What the profile's constants promise of each idea of the Hopper kernel, before the kernel is timed.

A promise is the most that an idea can bring, as seconds without it over seconds with it: it assumes that nothing else
hid what the idea hides, and that the idea hides all of it.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from attention.compare.results import HOPPER, Q_IN_REGISTERS
from attention.kernels.common.family import row_tiles, section_of
from attention.kernels.sm90a.forward.warp_specialised.arguments import shape_of
from attention.problem import AttentionProblem
from attention.variant import Config, by_path
from microbench.results.profile import Profile

PRODUCTS, EXPONENTIALS, MULTIPLIES = "wgmma_bf16_flops_per_clk_sm", "mufu_ex2_per_clk_sm", "ffma_per_clk_sm"
SHARED = "smem_bandwidth_bytes_per_clk_sm"


@dataclass(frozen=True)
class Promise:
    """`gain` is a ratio of seconds; `constants` of the profile decided it, or its SMs where there are none."""

    gain: float
    constants: tuple[str, ...]


def cycles(profile: Profile, problem: AttentionProblem, tile: Config) -> tuple[float, float]:
    """Clocks that one tile takes on the tensor cores of an SM, and on its exponential units."""
    amounts = _amounts(problem, tile)
    return (
        amounts["products on wgmma"] / profile.value(PRODUCTS),
        amounts["exponentials"] / profile.value(EXPONENTIALS),
    )


def overlap(profile: Profile, problem: AttentionProblem, tile: Config) -> Promise:
    """Exponentials beside products instead of after them."""
    products, exponentials = cycles(profile, problem, tile)
    return Promise((products + exponentials) / max(products, exponentials), (PRODUCTS, EXPONENTIALS))


def lazy(profile: Profile, problem: AttentionProblem, tile: Config) -> Promise:
    """One multiplication less for each output and tile of keys; comparisons of scores come on top, at no known rate."""
    shape = shape_of(problem, tile)
    saved = shape.tile_rows * shape.head_dim / profile.value(MULTIPLIES)
    return Promise(1 + saved / max(cycles(profile, problem, tile)), (MULTIPLIES, PRODUCTS, EXPONENTIALS))


def dynamic(profile: Profile, problem: AttentionProblem, tile: Config) -> Promise:
    """The busiest SM's keys where block b takes tiles b, b + SMs, ..., over those where the idle one takes the next."""
    work = keys_in_order(problem, tile)
    dealt = max(sum(work[first :: profile.sm_count]) for first in range(profile.sm_count))
    return Promise(dealt / makespan(work, profile.sm_count), ())


def held(profile: Profile, problem: AttentionProblem, tile: Config) -> Promise:
    """Q no longer read from shared memory for every tile of keys: worth something where nothing else takes longer."""
    axes = tuple((axis, value) for axis, value in tile.values if axis != Q_IN_REGISTERS)
    read = (_amounts(problem, Config((*axes, (Q_IN_REGISTERS, kept)))) for kept in (0, 1))
    shared, less = (amounts["operands from shared memory"] / profile.value(SHARED) for amounts in read)
    others = max(cycles(profile, problem, tile))
    return Promise(max(others, shared) / max(others, less), (SHARED, PRODUCTS, EXPONENTIALS))


PROMISES: dict[str, Callable[[Profile, AttentionProblem, Config], Promise]] = {
    "pingpong": overlap,
    "overlap": overlap,
    "lazy": lazy,
    "dynamic": dynamic,
    Q_IN_REGISTERS: held,
}


def _amounts(problem: AttentionProblem, tile: Config) -> dict[str, float]:
    variant = by_path(HOPPER)
    assert variant.tile is not None
    return {demand.term: demand.amount for demand in variant.tile(problem, tile).demands}


def keys_in_order(problem: AttentionProblem, tile: Config) -> list[int]:
    """Tiles of keys that each tile of rows works through, in the order of work.cuh: longest first within a section."""
    shape = shape_of(problem, tile)
    heads, rows = problem.batch * problem.heads_q, row_tiles(problem, shape.tile_rows)
    ends = [problem.seq_kv if not problem.causal else (row + 1) * shape.tile_rows for row in range(rows)]
    keys = [-(-min(problem.seq_kv, end) // shape.tile_keys) for end in ends]
    if not problem.causal:
        return keys * heads
    section = section_of(problem)
    widths = [min(section, heads - first) for first in range(0, heads, section)]
    return [count for width in widths for count in reversed(keys) for _ in range(width)]


def makespan(work: Sequence[int], units: int) -> int:
    """When the last unit ends where each takes the next piece as soon as it is idle."""
    busy = [0] * units
    for piece in work:
        heapq.heapreplace(busy, busy[0] + piece)
    return max(busy)
