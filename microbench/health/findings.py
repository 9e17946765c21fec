"""What is off with a board: its constants against those of its kind, its clock, its slowest SM, what was not measured.

A board of a kind that nobody has measured is held against the nearest board of its architecture, in what does not
depend on the board (cycles inside the SM, rates a clock), and against its data sheet.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from microbench.console import si
from microbench.health.state import Finding
from microbench.health.tolerance import less_is_better, spread, tolerance
from microbench.machine.clock import FASTEST, SLOWEST
from microbench.results.profile import Profile
from microbench.results.profile_constant import BELOW_DOCUMENTED, ProfileConstant
from microbench.results.quiet import OFF_CLOCK
from microbench.results.record import MEASURED, Run

# The slowest SM of a healthy board lies within this of the median one.
SLOW_SM = 0.03
SLOWEST_SM = "slowest_sm_ratio"
# Of the bus' rate a healthy board reads this much; measured 93 % on H100s and H200s.
LEAST_OF_BUS = 0.85


@dataclass(frozen=True)
class Reference:
    """What a board is held against, and what a reader is told of it. `same_kind`: measured on boards of its kind."""

    profile: Profile
    told: str
    same_kind: bool = True


def findings(examined: Profile, reference: Reference, expected: Sequence[str]) -> tuple[Finding, ...]:
    """What is off, the clock first; `expected` names the constants that the measurement should have given."""
    return (*_clock(examined, reference), *_missing(examined, expected), *_constants(examined, reference))


def _clock(examined: Profile, reference: Reference) -> Iterator[Finding]:
    """The clock of what ran at the nominal one on the reference: tensor cores pull it down on every board."""
    nominal = examined.clock_hz
    read = [
        (constant.clocks_mhz[0] + constant.clocks_mhz[1]) / 2
        for constant in examined.constants
        if constant.clocks_mhz and constant.name in reference.profile and not _at_other_clocks(reference, constant.name)
    ]
    if not read or not nominal:
        return
    mhz = sorted(read)[len(read) // 2]
    if not SLOWEST <= mhz * 1e6 / nominal <= FASTEST:
        yield Finding("clock", f"it ran at {mhz:.0f} MHz, where its driver admits {nominal / 1e6:.0f}.")


def _at_other_clocks(reference: Reference, name: str) -> bool:
    there = reference.profile[name]
    return there.governed_by is not None or OFF_CLOCK in there.flags


def _missing(examined: Profile, expected: Sequence[str]) -> Iterator[Finding]:
    for name in expected:
        if name not in examined:
            yield Finding(name, "it could not be measured; `smscope run` says why.")


def _constants(examined: Profile, reference: Reference) -> Iterator[Finding]:
    for constant in examined.constants:
        if _is_judged(constant) and constant.name in reference.profile:
            there = reference.profile[constant.name]
            if reference.same_kind or _of_the_architecture(there):
                yield from _against(constant, there)


def _is_judged(constant: ProfileConstant) -> bool:
    """Not what is the host's, a second method's, or a size between the few points of a quick run."""
    coarse = constant.unit == "bytes" and "quick" in constant.flags
    return constant.name != SLOWEST_SM and constant.governed_by != "host" and constant.method != "numba" and not coarse


def _of_the_architecture(constant: ProfileConstant) -> bool:
    """What every board of an architecture shares: cycles inside the SM, and what its pipes give a clock."""
    inside = not constant.name.startswith(("l2_", "dram_", "sm_port_"))
    return inside and (constant.unit.startswith("cycles") or "/clk" in constant.unit)


def _against(constant: ProfileConstant, there: ProfileConstant) -> Iterator[Finding]:
    allowed = max(tolerance(there), spread(there))
    if there.unit == "bytes":  # a size has the grain of its sweep, and campaigns that see other grains
        allowed = max(allowed, there.high / there.value - 1, 1 - there.low / there.value)
    ratio = constant.value / there.value
    if abs(ratio - 1) <= allowed:
        return
    worse = (ratio > 1) == less_is_better(constant)
    ours, theirs = si.written(constant.value, constant.unit), si.written(there.value, there.unit)
    apart = f"{abs(ratio - 1):.1%} {'worse' if worse else 'better'}"
    yield Finding(constant.name, f"{ours} against {theirs}: {apart}, and {allowed:.1%} is usual.")


def slow_sms(run: Run) -> Iterator[Finding]:
    """The SMs that take longer than the median one, by number, in the maps of the run's campaigns."""
    maps = [row.values for row in run.records if row.metric == SLOWEST_SM and row.values and row.status in MEASURED]
    if not maps:
        return
    every = np.array([[np.nan if value is None else value for value in each] for each in maps], dtype=np.float64)
    middle = np.nanmedian(every, axis=0)
    shares = middle / np.nanmedian(middle)
    for number in np.flatnonzero(shares > 1 + SLOW_SM):
        yield Finding(f"SM {number}", f"it takes {shares[number]:.3f} times as long as the median of {len(shares)}.")


def of_data_sheet(examined: Profile, dram_bytes_per_s: float | None) -> Iterator[Finding]:
    """What the board's own bus and its architecture's documents promise."""
    name = "dram_bandwidth_bytes_per_s"
    if dram_bytes_per_s and name in examined and examined.value(name) < LEAST_OF_BUS * dram_bytes_per_s:
        share = examined.value(name) / dram_bytes_per_s
        yield Finding(name, f"{share:.0%} of its bus' {si.written(dram_bytes_per_s, 'B/s')}; 90 % and more is usual.")
    for constant in examined.constants:
        if BELOW_DOCUMENTED in constant.flags and constant.bound_upper:
            most = si.written(constant.bound_upper, constant.unit)
            yield Finding(constant.name, f"{si.written(constant.value, constant.unit)} of documented {most}.")
