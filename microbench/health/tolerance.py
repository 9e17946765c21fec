"""How far two measurements of one quantity may lie apart before they are two, and which way is better.

What repeats on two H100s measured 48 minutes apart: of 47 constants in cycles 46 within 1 %, of 42 in ns or per second
40 within 3 %. What the host's CPU and driver take part in differed by 25 %, and is no property of a GPU.
"""

from microbench.results.profile_constant import ProfileConstant

CYCLES, NANOSECONDS, BANDWIDTH, POWER, SIZE, HOST = 0.01, 0.02, 0.03, 0.05, 0.05, 0.30
OF_UNIT = {"cycles": CYCLES, "ns": NANOSECONDS, "bytes": SIZE}


def tolerance(constant: ProfileConstant) -> float:
    """As a share of the value: 1 % in cycles and per clock, 2 % in ns, 3 % of a bandwidth, 5 % where power limits.

    A size has the grain of its sweep, an eighth of an octave and less.
    """
    if constant.governed_by:
        return POWER if constant.governed_by == "power" else HOST
    if constant.unit.startswith("cycles"):
        return CYCLES
    if "bandwidth" in constant.name:
        return BANDWIDTH
    return CYCLES if "/clk" in constant.unit else OF_UNIT.get(constant.unit, BANDWIDTH)


def spread(reference: ProfileConstant) -> float:
    """How far the boards of a kind lie from the value that stands for all of them, as a share of it."""
    return max((abs(each.value / reference.value - 1) for each in reference.boards), default=0.0)


def less_is_better(constant: ProfileConstant) -> bool:
    """True of what is waited for, false of rates and sizes."""
    return constant.unit.startswith("cycles") or constant.unit in ("ns", "us", "s", "W", "°C")
