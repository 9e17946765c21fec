"""What a call pays for code that its SMs do not hold: lines that are run first, dropped between, or laid far off.

A launch asks for the begin of its code ahead (instruction_fetch). ptxas lays the producer's code behind the consumers',
so that of a large build it lies beyond, and its lines come from DRAM one after another before the first tile is there.
"""

from functools import lru_cache

from attention.choose.coefficients.table import of
from attention.choose.one_clock import code_of
from attention.choose.prediction import Term
from attention.choose.rates import DRAM_LATENCY, FAR_FETCH, FETCH, Machine
from attention.choose.scores import ScoreCost, cost_of
from attention.choose.warpgroups.masks import mask_lines
from attention.choose.warpgroups.parts import Part
from attention.problem import AttentionProblem
from attention.tile import WarpgroupTile


@lru_cache(maxsize=1024)
def code_lines_of(tile: WarpgroupTile, cost: ScoreCost, guesses_under_mask: bool) -> float:
    """Lines of code that a warpgroup runs through."""
    keys, values = 2 + cost.edges + tile.crosses, 1 + tile.crosses
    of_all = of("code_lines") + of("key_lines") * tile.keys * keys + of("value_lines") * tile.value_dim * values
    parts = (of("part_lines") if tile.key_splits > 1 else 0.0) + (of("group_lines") if tile.group > 1 else 0.0)
    return of_all + parts + (mask_lines(tile, cost) if guesses_under_mask else 0.0)


def code_anew(machine: Machine, lines: float) -> Part:
    """Code of a tile of rows that an SM has dropped since the one before: beside a mask there is more of it."""
    dropped = max(0.0, lines - of("held_lines"))
    return Part("code that was dropped", "code anew", dropped * machine.values.get(FETCH, 0.0), FETCH)


def before_first_tile(
    machine: Machine, problem: AttentionProblem, tile: WarpgroupTile, lines: float, clock: float
) -> tuple[Term, ...]:
    """What a block does before its first loads, and code that its SM does not hold."""
    found = of("first_load_instructions") + (of("part_found_instructions") if tile.key_splits > 1 else 0.0)
    latency = machine.values[DRAM_LATENCY]
    terms = (
        Term("before the first loads", "begin", found / clock, "", 0.0),
        code_of(machine, lines, clock),
        Term("jumps to code", "jumps", of("code_jumps") * latency / clock, DRAM_LATENCY, latency),
    )
    far = min(of("producer_lines"), max(0.0, _laid(problem, tile) - of("asked_lines")))
    cycles = machine.values.get(FAR_FETCH, 0.0)
    if not far * cycles:
        return terms
    return *terms, Term("the producer's code, laid far off", "far code", far * cycles / clock, FAR_FETCH, cycles)


@lru_cache(maxsize=1024)
def _laid(problem: AttentionProblem, tile: WarpgroupTile) -> float:
    """Lines from the begin of a kernel's code to the end of its producer's."""
    of_key = of("laid_key_lines") * (1 + cost_of(problem).edges)
    of_key += of("laid_alibi_lines") * problem.alibi + of("laid_softcap_lines") * bool(problem.softcap)
    of_key += of("laid_mask_lines") * (problem.mask != "none")
    beside = of("laid_value_lines") * tile.value_dim + of("laid_range_lines") * problem.ranges
    if tile.crosses:
        of_key += of("laid_crossed_key_lines")
        beside += of("laid_crossed_lines")
    beside += of("laid_group_lines") * (tile.group > 1) + of("laid_part_lines") * (tile.key_splits > 1)
    lines: float = of("laid_lines") + of_key * tile.keys + beside
    return lines
