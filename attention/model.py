"""predict(): demands of a variant's tiles over the measured rates of a profile give seconds, and what bounds them.

    seconds = sum over phases of the longest of the phase's terms        (terms of a phase overlap, phases follow)
    term    = demand of one full tile / rate x full tiles' worth of scores that the busiest unit works through

A unit is an SM of a GPU or a logical core of a CPU. Every rate is a constant of the profile; none is typed here. What a
profile lacks makes a variant unpredicted, with the constant's name: never a guess.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import numpy as np

from attention.problem import AttentionProblem
from attention.shapes import LARGEST
from attention.variant import MEMORY, Config, Demand, Tile, Variant
from microbench.profile import Profile

HOST = "host"
FEW_QUERIES = 32  # on the CPU: less than a panel of our kernel there, whose lanes are queries
MOST_STEPS = 1 << 20  # of rows that are looked at one by one: 8 MB an array
LEVELS = ("l1", "l2", "l3")
LONGEST_OCTAVE = LARGEST.bit_length()  # of lengths
# On the host these bandwidths are one core's own; every other rate per second is that of the whole machine.
ONE_CORE = frozenset({"l1_bandwidth_bytes_per_s", "l2_bandwidth_bytes_per_s"})


@dataclass(frozen=True)
class Term:
    """One demand as time. `constant` of the profile had the value `rate`, in the constant's own unit."""

    term: str
    phase: str
    seconds: float
    constant: str
    rate: float


@dataclass(frozen=True)
class Efficiency:
    """What `timings` of a variant on this machine showed: predicted over measured seconds, their median.

    On the CPU also `overhead_seconds`, what a call takes before and after the work that is predicted.
    """

    value: float = 1.0
    timings: int = 0
    overhead_seconds: float = 0.0


@dataclass(frozen=True)
class Prediction:
    """Predicted seconds of one configuration: its phases' sum over its efficiency, and the overhead of a call.

    `bound_by` is the costliest term. `unhidden_seconds` is the sum of all terms, as if nothing overlapped: what tells
    equals apart.
    """

    seconds: float
    bound_by: str
    terms: tuple[Term, ...]
    cycles: float | None
    efficiency: Efficiency
    unhidden_seconds: float


@dataclass(frozen=True)
class Share:
    """What the busiest unit works through: full tiles' worth of scores, and tile rows."""

    tiles: float
    rows: float
    busy_units: int


def timed_keys(
    variant: Variant, config: Config, problem: AttentionProblem, octave: int | None = None
) -> tuple[str, str, str]:
    """Under which efficiencies hold what timings of a configuration showed for a problem, in order of nearness.

    Itself: its head dim as padded, the edges of its band and whether it is packed (what is compiled), about as many
    keys, or about 2**octave. Then any problem of the head dim, and any problem of the variant: see timed_class.
    """
    edges = problem.edges
    kind = f"{int(edges.left is not None)}{int(edges.right is not None)}{int(problem.varlen)}"
    whole = timed_class(variant, problem)
    head_dim = f"{whole} {config} D={variant.pads(problem.head_dim)}"
    return f"{head_dim} band={kind} 2^{_octave(problem) if octave is None else octave}", head_dim, whole


def timed_class(variant: Variant, problem: AttentionProblem) -> str:
    """The problems of a variant whose timings say something of one another.

    On the CPU these have one dtype, since half precision is another rate of torch's and a conversion for ours, and many
    queries or few: one query is bound by memory, and leaves most lanes of our kernel empty.
    """
    if HOST not in variant.archs:
        return variant.path
    return f"{variant.path} {problem.dtype} {'few' if problem.mean_lengths[0] < FEW_QUERIES else 'many'} queries"


def _octave(problem: AttentionProblem) -> int:
    return round(math.log2(problem.mean_lengths[1]))


def nearest_efficiency(
    efficiencies: Mapping[str, Efficiency], variant: Variant, config: Config, problem: AttentionProblem
) -> Efficiency | None:
    """What the timings of the nearest problems showed, lengths before head dims; None where a variant has none."""
    own = _octave(problem)
    octaves = sorted(range(LONGEST_OCTAVE + 1), key=lambda each: abs(each - own))
    lengths = (timed_keys(variant, config, problem, each)[0] for each in octaves)
    keys = chain(lengths, timed_keys(variant, config, problem)[1:])
    return next((efficiencies[key] for key in keys if key in efficiencies), None)


class Unpredicted(Exception):
    """The profile lacks what a prediction needs; the message says what."""


def predict(
    profile: Profile,
    problem: AttentionProblem,
    variant: Variant,
    config: Config,
    efficiency: Efficiency | None = None,
) -> Prediction:
    """Predict one configuration on one machine. Raises Unpredicted with the reason."""
    if variant.tile is None:
        raise Unpredicted("nothing is known of the inside of this kernel")
    efficiency = efficiency or Efficiency()
    tile = variant.tile(problem, config)
    share = share_of_busiest(problem, tile, profile.sm_count)
    machine = _Machine(profile, {constant.name: constant.value for constant in profile.constants})
    terms = [_term(machine, demand, share.tiles, share) for demand in tile.demands]
    terms += [_term(machine, demand, share.rows, share) for demand in tile.edge]
    phases = dict.fromkeys(term.phase for term in terms)
    longest = (max(term.seconds for term in terms if term.phase == phase) for phase in phases)
    seconds = sum(longest) / efficiency.value + efficiency.overhead_seconds
    bound = max(terms, key=lambda term: term.seconds)
    return Prediction(
        seconds=seconds,
        bound_by=bound.term,
        terms=tuple(terms),
        cycles=seconds * machine.clock_hz if machine.clock_hz else None,
        efficiency=efficiency,
        unhidden_seconds=sum(term.seconds for term in terms) / efficiency.value,
    )


def share_of_busiest(problem: AttentionProblem, tile: Tile, units: int) -> Share:
    """Deal the tile rows of all heads to the units, longest first.

    Of more than MOST_STEPS row steps, evenly spaced tile rows stand for all.
    Equal tile rows come in whole rounds; unequal ones (causal) even out, but none is shorter than the longest of them.
    """
    return _share(problem, tile.rows, tile.columns, tile.row_step, tile.column_step, units)


@lru_cache(maxsize=4096)
def _share(problem: AttentionProblem, rows: int, columns: int, row_step: int, column_step: int, units: int) -> Share:
    queries, keys = problem.mean_lengths
    steps_in_all = -(-queries // row_step)
    steps_of_one = max(1, rows // row_step)
    in_all = -(-steps_in_all // steps_of_one)
    looked_at = min(in_all, max(2, MOST_STEPS // steps_of_one))
    chosen = np.linspace(0, in_all - 1, looked_at).astype(np.int64)  # all, where there are no more than that
    at = chosen[:, None] * steps_of_one + np.arange(steps_of_one)
    first_rows = at * row_step
    begin, end = problem.band(queries, keys).keys(first_rows, first_rows + row_step - 1, keys)
    steps = np.where((end > begin) & (at < steps_in_all), -(-end // column_step) - begin // column_step, 0)
    tile_rows = row_step * column_step * steps.sum(axis=1, dtype=np.float64) / (rows * columns)
    heads = problem.batch * problem.heads_q
    count = heads * in_all
    rounds = -(-count // units)
    longest, total = float(tile_rows.max()), float(tile_rows.sum()) * (in_all / looked_at) * heads
    even = longest == float(tile_rows.min())
    return Share(rounds * longest if even else max(longest, total / units), float(rounds), min(units, count))


@dataclass(frozen=True)
class _Machine:
    """A profile, and its constants by name: a prediction asks for some twenty."""

    profile: Profile
    values: Mapping[str, float]

    @property
    def clock_hz(self) -> float | None:
        """The SM clock at which rates per clock were measured, where that is known."""
        return self.values["sm_clock_mhz"] * 1e6 if "sm_clock_mhz" in self.values else self.profile.clock_hz

    @property
    def needed_clock_hz(self) -> float:
        """The same; raises Unpredicted without one."""
        if self.clock_hz is None:
            raise Unpredicted(f"the profile of {self.profile.gpu} holds no SM clock")
        return self.clock_hz


def _term(machine: _Machine, demand: Demand, times: float, share: Share) -> Term:
    profile, values = machine.profile, machine.values
    constant = _nearest_level(values, demand.resident_bytes) if demand.rate == MEMORY else demand.rate
    alone = constant.replace("_per_s", "_one_thread_per_s")
    if share.busy_units == 1 and alone in values:
        constant = alone
    if constant not in values:
        raise Unpredicted(f"the profile of {profile.gpu} holds no {constant}; `make bench` on it measures what it can")
    value = values[constant]
    if constant.endswith("_per_clk_sm"):
        rate = value * machine.needed_clock_hz
    elif constant.endswith("_cycles"):
        rate = machine.needed_clock_hz / value  # a latency that nothing hides, `amount` times over
    elif constant == alone or (profile.arch == HOST and constant in ONE_CORE):
        rate = value
    else:
        rate = value / profile.sm_count
    return Term(demand.term, demand.phase, demand.amount * times / rate, constant, value)


def _nearest_level(values: Mapping[str, float], resident_bytes: float) -> str:
    """The bandwidth of the smallest cache that holds this much; DRAM's where no cache does, or none was measured."""
    for level in LEVELS:
        size, bandwidth = f"{level}_size_bytes", f"{level}_bandwidth_bytes_per_s"
        if size in values and bandwidth in values and resident_bytes <= values[size]:
            return bandwidth
    return "dram_bandwidth_bytes_per_s"
