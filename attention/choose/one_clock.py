"""What predictions by an SM's residents share: one clock, and the call around the busiest SM's cycles.

    clock   = highest - tensor share * (highest - clock of products alone)
    seconds = alone + max(cycles / clock - alone, the slowest memory) + loads in a queue + first loads + launch

SMs, the L2 and the DRAM are stations of a closed network (choose.queues), and its customers are the loads that SMs
have under way: with few of them whoever is nearly as slow as the slowest is waited for.
`alone` are the SM's seconds in which memory has nothing to bring: the first block's begin, the last one's end.
Products slow the clock down (power), and what else runs beside them does not count: the energy of a byte from L2 is no
constant yet.
"""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from typing import NamedTuple

from attention.choose.coefficients.table import BYTES, GRANULE, SECTOR, SLOT, of
from attention.choose.lengths import Lengths
from attention.choose.lines import granules_of, inside_of, leads, slots_of, stored_slots_of
from attention.choose.prediction import SECONDS, Account, Efficiency, Prediction, Term
from attention.choose.queues import together
from attention.choose.rates import (
    DRAM,
    DRAM_LATENCY,
    FETCH,
    L2,
    L2_SIZE,
    WRITE_BACK,
    WRITTEN_BACK,
    Machine,
    launch_of,
)
from attention.choose.shares import queries
from attention.problem import AttentionProblem

MEMORY_SHARERS = round(of("memory_sharers"))


def clock_under(machine: Machine, flops: float, flops_per_clk: float, burst: str, cycles: float) -> float:
    """SM clock in Hz, by the share of the tensor cores' cycles that so much work takes of the busiest SM's `cycles`.

    `flops_per_clk` are an SM's, and `burst` names the constant of products alone.
    """
    highest = machine.needed_clock_hz
    taken = min(1.0, flops / flops_per_clk / machine.profile.sm_count / cycles)
    return highest - taken * _slowed(machine, flops_per_clk, burst)


@lru_cache(maxsize=1024)
def _slowed(machine: Machine, flops_per_clk: float, burst: str) -> float:
    """Hz by which products alone slow the clock down."""
    return max(0.0, machine.needed_clock_hz - machine.value(burst) / flops_per_clk / machine.profile.sm_count)


class Loads(NamedTuple):
    """So many of an SM under way at a time; 0 where nobody knows, so that the slowest alone counts.

    `lone`: each block has an SM to itself, and all ask for their tiles at once.
    """

    in_flight: int = 0
    lone: bool = False


UNKNOWN_LOADS = Loads()


def call_of(
    machine: Machine,
    problem: AttentionProblem,
    terms: Callable[[], Sequence[Term]],
    memory: tuple[Term, Term],
    busy_seconds: float,
    efficiency: Efficiency,
    loads: Loads = UNKNOWN_LOADS,
    alone_seconds: float = 0.0,
    at_least: Term | None = None,
    kernels: int = 1,
) -> Prediction:
    """A call, launch and all, of the `terms` that make up the busiest SM's seconds, beside `memory`: L2 and DRAM.

    `alone_seconds`: of the busiest SM's, those beside which no SM loads. `at_least`: what memory takes where blocks
    end one after another.
    """
    l2, dram = memory
    slowest, beside = dram if dram.seconds > l2.seconds else l2, busy_seconds - alone_seconds
    waited = _waited(beside, memory, slowest, loads) if loads.in_flight else 0.0
    beside_it: tuple[Term, ...] = memory
    if at_least:
        beside_it = *memory, at_least
        slowest = max(slowest, at_least, key=SECONDS)
    start = start_of(machine, problem.own_lengths, kernels)
    seconds = alone_seconds + max(beside, slowest.seconds) + sum(map(SECONDS, start), waited)
    seconds = seconds / efficiency.value + efficiency.overhead_seconds
    cycles = seconds * machine.needed_clock_hz
    # Nothing is hidden that another schedule would show.
    account = partial(_account, terms, beside_it, start, slowest, waited, slowest.seconds > beside)
    return Prediction.accounted(seconds, account, cycles, efficiency, unhidden_seconds=seconds)


def _account(
    terms: Callable[[], Sequence[Term]],
    memory: Sequence[Term],
    start: Sequence[Term],
    slowest: Term,
    waited: float,
    memory_bound: bool,
) -> Account:
    """What bounds a call, and all of its terms."""
    of_sm = terms()
    bound = slowest if memory_bound else max(of_sm, key=SECONDS)
    queue = (Term("loads in a queue", "queue", waited, slowest.constant, slowest.rate),) if waited else ()
    return bound.term, (*of_sm, *memory, *queue, *start)


class Missed(NamedTuple):
    """Of what two heads share, the share that comes again for the second: sectors of a line, and granules at least.

    `drifted`: by what share of itself DRAM takes longer, since blocks ask for rows far from each other.
    """

    sectors: float
    granules: float
    drifted: float = 0.0


IN_STEP = Missed(0.0, 0.0)  # blocks with an SM each, while little is under way
BY_ROWS = Missed(of("missed_sectors"), 0.0, of("drifted"))
BY_BOXES = Missed(of("missed_sectors"), of("missed_granules"))


@lru_cache(maxsize=1024)  # most blocks of a call run at once, or as large a share of them
def dram_of(
    machine: Machine, problem: AttentionProblem, rows: int, at_once: float, missed: Missed, l2_written: bool
) -> Term:
    """What so many rows of Q, K, V and out take, and what goes back for them where others have written the L2 full.

    `at_once`: the share of all blocks that run beside each other. Heads lie side by side, as a projection writes them.
    """
    size: float = BYTES * rows * (problem.head_dim + problem.head_dim_v)
    if problem.heads_kv > 1:
        size += _again(machine, problem, rows, size * at_once, missed)
    dram, ratio = machine.value(DRAM), machine.values.get(WRITE_BACK, 0.0) if l2_written else 0.0
    returned = min(ratio * size, machine.values.get(WRITTEN_BACK, 0.0))
    seconds = (size + returned) / dram * (1 + missed.drifted)
    return Term("Q, K, V and out from DRAM", "memory", seconds, DRAM, dram)


def l2_of(
    machine: Machine,
    problem: AttentionProblem,
    keys: float,
    spans: tuple[int, int],
    lengths: Lengths,
    mask_bytes: float = 0.0,
) -> Term:
    """K and V of so many `keys`, those of each tile of rows again, with masks; Q, and out.

    `spans`: bytes of a row of K, and of V, that are asked for together. `mask_bytes`: of a key, for a tile of rows.
    """
    begin = leads(problem)
    of_q, of_v = slots_of(problem.head_dim, spans[0], begin), slots_of(problem.head_dim_v, spans[1], begin)
    of_keys = keys * (SLOT * (of_q + of_v) + mask_bytes)
    of_rows = queries(problem, lengths) * SLOT * (of_q + stored_slots_of(problem.head_dim_v))
    l2 = machine.values[L2]
    return Term("rows by the L2", "memory", (of_keys + of_rows) / l2, L2, l2)


def _again(machine: Machine, problem: AttentionProblem, rows: int, meanwhile: float, missed: Missed) -> float:
    """Bytes that DRAM gives again: of granules that two heads share, whose blocks drift apart while so many go by.

    And what the L2 misses of sectors beside.
    """
    sectors = missed.sectors * SECTOR * rows * (inside_of(problem.head_dim) + inside_of(problem.head_dim_v))
    if L2_SIZE not in machine.values:
        return sectors
    lost = min(1.0, of("drift") * meanwhile / machine.values[L2_SIZE])
    return sectors + max(lost, missed.granules) * rows * _shared_bytes(problem.head_dim, problem.head_dim_v)


@cache
def _shared_bytes(*dims: int) -> float:
    """Of the granules of a row of K and of V, those that are another head's."""
    return sum(GRANULE * granules_of(dim) - BYTES * dim for dim in dims)


def code_of(machine: Machine, lines: float, clock: float) -> Term:
    """What lines of code cost that no SM holds yet, at an SM clock in Hz; nothing where the profile does not say."""
    cycles = machine.values.get(FETCH, 0.0)
    return Term("code for the first time", "code", lines * cycles / clock, FETCH if cycles else "", cycles)


def _waited(busy_seconds: float, memory: Sequence[Term], slowest: Term, loads: Loads) -> float:
    """What loads wait for each other at DRAM and L2, and what was loaded for the SM, where none of them is idle."""
    all_of_it = together(busy_seconds, [each.seconds for each in memory], loads.in_flight, MEMORY_SHARERS)
    queued = all_of_it - max(busy_seconds, slowest.seconds)
    return queued * of("queued_in_step") if loads.lone else queued


@lru_cache(maxsize=1024)
def start_of(machine: Machine, of_own_lengths: bool, kernels: int) -> tuple[Term, ...]:
    """What comes before all blocks: their first loads, and the launch of so many kernels."""
    return _first_loads(machine, of_own_lengths), *launch_of(machine, kernels)


def _first_loads(machine: Machine, of_own_lengths: bool) -> Term:
    latency = machine.value(DRAM_LATENCY)
    trips = of("first_loads") + (of("length_trips") if of_own_lengths else 0.0)
    return Term("first loads", "start", trips * latency / machine.needed_clock_hz, DRAM_LATENCY, latency)
