"""predict(): demands of a variant's tiles over the measured rates of a profile give seconds, and what bounds them.

    seconds = sum over phases of the longest of the phase's terms        (terms of a phase overlap, phases follow)
    term    = demand of one full tile / rate x full tiles' worth of scores that the busiest unit works through
              or the sum of such, of a chain whose links wait for each other

A unit is an SM of a GPU or a logical core of a CPU. Every rate is a constant of the profile; none is typed here. What a
profile lacks, or holds in doubt (measured on a busy machine), makes a variant unpredicted, with the constant's name:
never a guess.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Annotated, NamedTuple

from pydantic import PlainSerializer

from attention.choose.shares import share_of_busiest
from attention.problem import AttentionProblem
from attention.variant import MEMORY, Config, Variant
from microbench import paths
from microbench.results.doubt import doubt
from microbench.results.profile import Profile
from microbench.results.profile_constant import ProfileConstant

HOST = "host"
LEVELS = ("l1", "l2", "l3")
KEPT_MACHINES = 16
# On the host these bandwidths are one core's own; every other rate per second is that of the whole machine.
ONE_CORE = frozenset({"l1_bandwidth_bytes_per_s", "l2_bandwidth_bytes_per_s"})


class Term(NamedTuple):  # a choice makes a hundred and more, and a frozen dataclass takes four times as long to make
    """One demand as time. `constant` of the profile had the value `rate`, in the constant's own unit.

    Of a chain: the sum of its `links`, with the constant of the longest.
    """

    term: str
    phase: str
    seconds: float
    constant: str
    rate: float
    links: tuple["Term", ...] = ()

    @property
    def constants(self) -> tuple[str, ...]:
        """All that it rests on."""
        return (self.constant, *(each.constant for each in self.links))


_SECONDS = attrgetter("seconds")


@dataclass(frozen=True)
class Efficiency:
    """What `timings` of a variant on this machine showed: predicted over measured seconds, their median.

    `near`: they are of this very configuration, head dim and kind of problem, at some length.
    On the CPU also `overhead_seconds`, what a call takes before and after the work that is predicted.
    """

    value: float = 1.0
    timings: int = 0
    near: bool = False
    overhead_seconds: float = 0.0


@dataclass(frozen=True)
class Prediction:
    """Predicted seconds of one configuration: its phases' sum over its efficiency, and the overhead of a call.

    `bound_by` is the costliest term. `unhidden_seconds` is the sum of all terms, as if nothing overlapped: what tells
    equals apart.
    """

    seconds: float
    bound_by: str
    terms: tuple[Annotated[Term, PlainSerializer(Term._asdict)], ...]
    cycles: float | None
    efficiency: Efficiency
    unhidden_seconds: float


class Unpredicted(Exception):
    """The profile lacks what a prediction needs; the message says what. `doubtful` names a constant in doubt."""

    def __init__(self, why: str, doubtful: str | None = None) -> None:
        super().__init__(why)
        self.doubtful = doubtful


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
    machine = _machine(profile)
    alone = share.busy_units == 1
    terms: list[Term] = []
    chains: dict[tuple[str, str], list[Term]] = {}
    longest: dict[str, float] = {}
    total = 0.0
    for demands, times in ((tile.demands, share.tiles), (tile.edge, share.rows)):
        for name, phase, amount, constant, resident_bytes, of in demands:
            rate = machine.rates.get((constant, alone)) or _rate_of(machine, constant, resident_bytes, alone)
            seconds = amount * times / rate.per_unit_s
            term = Term(name, phase, seconds, rate.constant, rate.value)
            for chain in of:
                chains.setdefault((chain, phase), []).append(term)
            if of:
                continue
            terms.append(term)
            total += seconds
            if seconds > longest.get(phase, 0.0):
                longest[phase] = seconds
    for (chain, phase), links in chains.items():
        seconds, most = sum(map(_SECONDS, links)), max(links, key=_SECONDS)
        terms.append(Term(chain, phase, seconds, most.constant, most.rate, tuple(links)))
        longest[phase] = max(seconds, longest.get(phase, 0.0))
    seconds = sum(longest.values()) / efficiency.value + efficiency.overhead_seconds
    bound = max(terms, key=_SECONDS)
    return Prediction(
        seconds=seconds,
        bound_by=bound.term,
        terms=tuple(terms),
        cycles=seconds * machine.clock_hz if machine.clock_hz else None,
        efficiency=efficiency,
        unhidden_seconds=total / efficiency.value,
    )


@dataclass(frozen=True)
class _Rate:
    """What one unit gets done in a second, and the constant, in its own unit, that says so."""

    per_unit_s: float
    constant: str
    value: float


@dataclass(frozen=True)
class _Machine:
    """A profile, its constants by name, the values of those that are not in doubt, and its SM clock."""

    profile: Profile
    constants: Mapping[str, ProfileConstant]
    values: Mapping[str, float]
    clock_hz: float | None
    rates: dict[tuple[str, bool], _Rate] = field(default_factory=dict)  # those that were asked for

    def value(self, name: str) -> float:
        """A constant's value. Raises Unpredicted where the profile has none, or one in doubt."""
        found = self.values.get(name)
        if found is not None:
            return found
        constant = self.constants.get(name)
        if constant is None:
            gpu, bench = self.profile.gpu, paths.typed("bench")
            lacks = f"the profile of {gpu} holds no {name}" if self.constants else f"nothing of {gpu} was measured"
            raise Unpredicted(f"{lacks}; `{bench}` on it measures what it can")
        raise Unpredicted(f"{doubt(constant)}", name)

    @property
    def needed_clock_hz(self) -> float:
        """The clock at which rates per clock were measured; raises Unpredicted without one."""
        if self.clock_hz is None:
            if "sm_clock_mhz" in self.constants:
                self.value("sm_clock_mhz")  # names what is in doubt
            raise Unpredicted(f"the profile of {self.profile.gpu} holds no SM clock")
        return self.clock_hz


_machines: dict[int, _Machine] = {}


def _machine(profile: Profile) -> _Machine:
    """Kept by identity: one choice predicts twenty candidates by one profile, and hashing its constants costs more."""
    found = _machines.get(id(profile))
    if found is None or found.profile is not profile:
        if len(_machines) >= KEPT_MACHINES:
            _machines.clear()
        constants = {constant.name: constant for constant in profile.constants if constant.value > 0}
        values = {name: constant.value for name, constant in constants.items() if not constant.doubtful}
        clock_hz = profile.clock_hz
        if "sm_clock_mhz" in constants:
            clock_hz = values["sm_clock_mhz"] * 1e6 if "sm_clock_mhz" in values else None
        found = _machines[id(profile)] = _Machine(profile, constants, values, clock_hz)
    return found


def _rate_of(machine: _Machine, constant: str, resident_bytes: float, alone: bool) -> _Rate:
    if constant == MEMORY:
        constant = _nearest_level(machine, resident_bytes)
    if (constant, alone) not in machine.rates:
        machine.rates[constant, alone] = _rate(machine, constant, alone)
    return machine.rates[constant, alone]


def _rate(machine: _Machine, constant: str, alone: bool) -> _Rate:
    """The rate of one unit, of which `alone` says that no other is busy. Raises Unpredicted."""
    of_one_thread = constant.replace("_per_s", "_one_thread_per_s")
    alone = alone and of_one_thread in machine.constants
    if alone:
        constant = of_one_thread
    value = machine.value(constant)
    if constant.endswith("_per_clk_sm"):
        rate = value * machine.needed_clock_hz
    elif constant.endswith("_cycles"):
        rate = machine.needed_clock_hz / value  # a latency that nothing hides, `amount` times over
    elif alone or (machine.profile.arch == HOST and constant in ONE_CORE):
        rate = value
    else:
        rate = value / machine.profile.sm_count
    return _Rate(rate, constant, value)


def _nearest_level(machine: _Machine, resident_bytes: float) -> str:
    """The bandwidth of the smallest cache that holds this much; DRAM's where no cache does, or none was measured."""
    for level in LEVELS:
        size, bandwidth = f"{level}_size_bytes", f"{level}_bandwidth_bytes_per_s"
        measured = size in machine.constants and bandwidth in machine.constants
        if measured and resident_bytes <= machine.value(size):
            return bandwidth
    return "dram_bandwidth_bytes_per_s"
