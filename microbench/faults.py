"""What is wrong with data that only advise: each fault is named once, and what is faulty is left out.

A profile, or a timing on file, decides how fast a call is, never whether it runs.
"""

import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from microbench.errors import DataWarning
from microbench.probe import breaks

if TYPE_CHECKING:
    from microbench.profile import ProfileConstant

SHOWN = 5  # of one file
SMALLEST, LARGEST = 1e-30, 1e30  # of a constant, in whatever unit

_said: set[Path] = set()


def leave_out(file: Path, faults: Sequence[str]) -> None:
    """Warn of what is left out of a file, once in a process and file."""
    if not faults or file in _said:
        return
    _said.add(file)
    more = f"; and {len(faults) - SHOWN} more" if len(faults) > SHOWN else ""
    text = "; ".join(fault.removesuffix(".") for fault in faults[:SHOWN])
    warnings.warn(f"{file.name}: {text}{more}. This is left out, the rest counts.", DataWarning, stacklevel=3)


def forget() -> None:
    """Say everything again."""
    _said.clear()


def first_of(error: ValidationError) -> str:
    """The field that a validation stumbled over first, and why."""
    first = error.errors()[0]
    return ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))


def of_constant(constant: "ProfileConstant") -> str | None:
    """Why a constant cannot be right: not positive, outside of its interval or of its physical bound."""
    value, low, high = constant.value, constant.low, constant.high
    if not (math.isfinite(value) and SMALLEST <= value <= LARGEST):
        return f"value is {value:g}, and no rate, size or latency is"
    if not low <= value <= high:
        return f"its interval [{low:g}, {high:g}] does not hold its value {value:g}"
    if breaks(value, constant.bound_lower, constant.bound_upper):
        return f"{value:g} {constant.unit} breaks its bound ({constant.bound_why})"
    return None
