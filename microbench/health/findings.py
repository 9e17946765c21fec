"""What is off with a board: its constants against those of its kind, its clock, its slowest SM, what was not measured.

A board of a kind that nobody has measured is held against the nearest board of its architecture, in what does not
depend on the board (cycles inside the SM, rates a clock), and against its data sheet.
"""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from microbench.console import si
from microbench.health.reference import Reference
from microbench.health.state import Finding
from microbench.health.tolerance import less_is_better, spread, tolerance
from microbench.machine.clock import FASTEST, SLOWEST, STEP_MHZ
from microbench.probe import REACHED
from microbench.results.profile import Profile
from microbench.results.profile_constant import BELOW_DOCUMENTED, ProfileConstant
from microbench.results.quiet import OFF_CLOCK
from microbench.results.record import Run

# A burst of a cool chip is faster than the reference's: by 7 % after a quick run's few seconds on an H200.
COOL = 0.10
# The slowest SM of a healthy board lies within this of the median one.
SLOW_SM = 0.03
SLOWEST_SM = "slowest_sm_ratio"
SHOWN_SMS = 3
# Behind a memset since 2026-11-26: in runs before, the host's time is a part of it (launch_latency.py).
TIMED_OTHERWISE = ("event_to_event_empty_kernel_ns",)
SHOWN_NAMES = 3
# One quantity's clock, where that of most is right: after a load healthy H200s begin the next probe up to 5 % below.
SLOW_CLOCK = 0.92
# Of the bus' rate a healthy board reads this much; measured 93 % on H100s and H200s.
LEAST_OF_BUS = 0.85


def findings(examined: Profile, reference: Reference, expected: Mapping[str, Sequence[str]]) -> tuple[Finding, ...]:
    """What is off, the clock first; `expected` names, by probe, the constants that should have been measured."""
    return (
        *_cut(examined, reference),
        *_clock(examined, reference),
        *_missing(examined, expected),
        *_constants(examined, reference),
    )


def _cut(examined: Profile, reference: Reference) -> Iterator[Finding]:
    if reference.same_kind and examined.sm_count != reference.profile.sm_count:
        yield Finding("SMs", f"{examined.sm_count} of the {reference.profile.sm_count} that its kind has.")


def _clock(examined: Profile, reference: Reference) -> Iterator[Finding]:
    """The clock of what ran at the nominal one on the reference: tensor cores pull it down on every board."""
    nominal = examined.clock_hz
    read = {
        constant.name: constant.clocks_mhz
        for constant in examined.constants
        if constant.clocks_mhz and constant.name in reference.profile and not _at_other_clocks(reference, constant.name)
    }
    if not read or not nominal:
        return
    first = [each.name for each in examined.constants if each.method != "numba" and each.name in read]
    slow = [name for name in first if read[name][1] * 1e6 < SLOW_CLOCK * nominal]
    low, high = median(low for low, _ in read.values()), median(high for _, high in read.values())
    if low * 1e6 < SLOWEST * nominal or high * 1e6 > FASTEST * nominal:
        at = f"{low:.0f}" if high - low < STEP_MHZ else f"{low:.0f} to {high:.0f}"
        yield Finding("clock", f"it ran at {at} MHz, where its driver admits {nominal / 1e6:.0f}.")
    elif slow:
        at = f"{min(read[name][0] for name in slow):.0f} MHz or a little more"
        yield Finding("clock", f"{_listed(slow)} ran at {at}, where its driver admits {nominal / 1e6:.0f}.")


def nominal_clock(examined: Profile) -> Iterator[Finding]:
    """Where there is no reference: whether any quantity at all ran at the clock that the driver admits."""
    nominal, read = examined.clock_hz, [each.clocks_mhz[1] for each in examined.constants if each.clocks_mhz]
    if nominal and read and max(read) * 1e6 < SLOWEST * nominal:
        yield Finding("clock", f"it ran at {max(read):.0f} MHz at most, where its driver admits {nominal / 1e6:.0f}.")


def judged(examined: Profile, reference: Reference | None) -> int:
    """How many of its constants are held against something: not a second method's, not the host's."""
    if reference is None:
        return 0
    return sum(
        _is_judged(each) and each.name in reference.profile and (reference.same_kind or _of_the_architecture(each))
        for each in examined.constants
    )


def _listed(names: Sequence[str]) -> str:
    more = len(names) - SHOWN_NAMES
    return ", ".join(names[:SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "")


def _at_other_clocks(reference: Reference, name: str) -> bool:
    there = reference.profile[name]
    return there.governed_by is not None or OFF_CLOCK in there.flags


def _missing(examined: Profile, expected: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    """A probe of which nothing came is one finding."""
    for probe, names in expected.items():
        lost = [name for name in names if name not in examined]
        if lost == list(names) and len(names) > SHOWN_NAMES:
            yield Finding(probe, f"none of its {len(names)} constants could be measured; `smscope run` says why.")
        else:
            yield from (Finding(name, "it could not be measured; `smscope run` says why.") for name in lost)


def _constants(examined: Profile, reference: Reference) -> Iterator[Finding]:
    for constant in examined.constants:
        if constant.fault:
            yield Finding(constant.name, f"{constant.fault}; such a number is no measurement.")
        elif _is_judged(constant) and constant.name in reference.profile:
            there = reference.profile[constant.name]
            if reference.same_kind or _of_the_architecture(there):
                yield from _against(constant, there)


def _is_judged(constant: ProfileConstant) -> bool:
    """Not what is the host's, a second method's, another quantity in older runs, or a size between few points."""
    coarse = constant.unit == "bytes" and "quick" in constant.flags
    named = constant.name == SLOWEST_SM or constant.name in TIMED_OTHERWISE
    return not named and constant.governed_by != "host" and constant.method != "numba" and not coarse


def _of_the_architecture(constant: ProfileConstant) -> bool:
    """What every board of an architecture shares: cycles inside the SM, and what its pipes give a clock."""
    inside = not constant.name.startswith(("l2_", "dram_"))
    return inside and (constant.unit.startswith("cycles") or "/clk" in constant.unit)


def _against(constant: ProfileConstant, there: ProfileConstant) -> Iterator[Finding]:
    ratio = constant.value / there.value
    worse = (ratio > 1) == less_is_better(constant)
    # Around what the boards of its kind gave, not instead of it: the board that lies furthest out has its noise too.
    allowed = tolerance(there) + spread(there)
    if there.governed_by == "power" and there.unit == "FLOP/s" and not worse:
        allowed = max(allowed, COOL)
    if there.unit == "bytes":  # a size has the grain of its sweep, and campaigns that see other grains
        allowed = max(allowed, there.high / there.value - 1, 1 - there.low / there.value)
    if BELOW_DOCUMENTED in there.flags and ratio > 1:  # its kernel held the reference back
        return
    if abs(ratio - 1) < allowed:
        return
    ours, theirs = si.written(constant.value, constant.unit), si.written(there.value, there.unit)
    apart = f"{abs(ratio - 1):.2%} {'worse' if worse else 'better, which is as odd'}"
    yield Finding(constant.name, f"{ours} against {theirs}: {apart}; boards of a kind lie within {allowed:.2%}.")


def slow_sms(run: Run) -> Iterator[Finding]:
    """The SMs that take longer than the median one, by number, in the maps of the run's campaigns."""
    maps = [row.values for row in run.records if row.metric == SLOWEST_SM and row.values and row.measured]
    if not maps:
        return
    times: dict[int, list[float]] = {}
    for each in maps:
        for number, value in enumerate(each):
            if isinstance(value, int | float):
                times.setdefault(number, []).append(value)
    middle = {number: median(values) for number, values in times.items()}
    usual = median(middle.values()) if middle else 0.0
    slow = {number: value / usual for number, value in middle.items() if value > (1 + SLOW_SM) * usual}
    for number in sorted(slow, key=lambda number: -slow[number])[:SHOWN_SMS]:
        yield Finding(f"SM {number}", f"it takes {slow[number]:.3f} times as long as the median of {len(middle)}.")
    if len(slow) > SHOWN_SMS:
        yield Finding("SMs", f"{len(slow)} of {len(middle)} are slow; the slowest are named.")


def of_data_sheet(
    examined: Profile, dram_bytes_per_s: float | None, reference: Reference | None = None
) -> Iterator[Finding]:
    """What the board's own bus and its architecture's documents promise, and boards of its kind reached."""
    reached = (
        {each.name for each in reference.profile.constants if BELOW_DOCUMENTED not in each.flags} if reference else ()
    )
    name = "dram_bandwidth_bytes_per_s"
    if dram_bytes_per_s and name in examined:
        share, bus = examined.value(name) / dram_bytes_per_s, si.written(dram_bytes_per_s, "B/s")
        if share < LEAST_OF_BUS:
            yield Finding(name, f"{share:.0%} of its bus' {bus}; {LEAST_OF_BUS:.0%} is the least that is usual.")
        if share > 1:
            yield Finding(name, f"{share:.0%} of its bus' {bus}, which no board reads.")
    for constant in examined.constants:
        if reference is not None and reference.same_kind and constant.name not in reached:
            continue
        if BELOW_DOCUMENTED in constant.flags and constant.bound_upper:
            ours, most = (si.written(number, constant.unit) for number in (constant.value, constant.bound_upper))
            yield Finding(constant.name, f"{ours} of documented {most}; {REACHED:.0%} is usual.")
