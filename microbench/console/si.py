"""How a number is written for people: three significant digits, an SI prefix where the unit takes one."""

import math
from dataclasses import dataclass

_STEPS = (
    (1e15, "P"),
    (1e12, "T"),
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
    (1.0, ""),
    (1e-3, "m"),
    (1e-6, "µ"),
    (1e-9, "n"),
)
_BINARY = ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))
# Rates take a prefix whatever they count (B/s, FLOP/s, FMA/s); per clock they do not.
_PREFIXED = {"Hz": ("Hz", 1.0), "s": ("s", 1.0), "ns": ("s", 1e-9)}
_SIZES = ("bytes", "B")


@dataclass(frozen=True)
class Scale:
    """What to divide a value by before it is written, and the unit that it then has."""

    divisor: float
    unit: str


def scale(value: float, unit: str) -> Scale:
    """The scale that writes `value` with one to three digits before the point: 3.05e12 'B/s' in TB/s."""
    size = abs(value)
    if unit in _SIZES:
        divisor, name = next((step for step in _BINARY if size >= step[0]), _BINARY[-1])
        return Scale(divisor, name)
    if not (unit in _PREFIXED or unit.endswith("/s")) or size == 0 or not math.isfinite(size):
        return Scale(1.0, unit)
    base, factor = _PREFIXED.get(unit, (unit, 1.0))
    # 999.6 would be written 1000: it belongs to the next prefix
    step, prefix = next((s for s in _STEPS if float(f"{size * factor:.3g}") >= s[0]), _STEPS[-1])
    return Scale(step / factor, prefix + base)


def digits(value: float, like: float | None = None) -> str:
    """Three significant digits, or as many decimals as `like` gets; whole numbers from 1000 on."""
    reference = abs(value if like is None else like)
    if reference == 0 or not math.isfinite(reference):
        return f"{value:g}"
    decimals = max(0, 2 - math.floor(math.log10(float(f"{reference:.3g}"))))
    return f"{value:.{decimals}f}"


def written(value: float, unit: str) -> str:
    """`value` with its unit: '3.05 TB/s', '32.1 cycles'."""
    by = scale(value, unit)
    return f"{digits(value / by.divisor)} {by.unit}"


def counted(count: int, noun: str) -> str:
    """'1 kernel', '2 kernels', '0 kernels'."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def interval(low: float, high: float, value: float, unit: str) -> str:
    """'[32.0, 32.2]', in the unit and with the decimals that `value` is written with."""
    by = scale(value, unit)
    like = value / by.divisor
    return f"[{digits(low / by.divisor, like)}, {digits(high / by.divisor, like)}]"
