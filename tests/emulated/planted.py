"""How a kernel with a planted bug ends: the emulator's report, a wrong result, or unnoticed."""

import re
from collections.abc import Callable
from typing import Literal

import numpy as np

from microbench.emulator import EmulatedDevice, Mode
from microbench.errors import DeviceError
from microbench.verify.differential.attention_case import Floats

Outcome = Literal["report", "result", "missed"]


def bug_numbers(source: str) -> dict[str, int]:
    """The names of a kernel's `enum Bug`, in order; NONE is 0."""
    match = re.search(r"enum Bug \{([^}]*)\}", source)
    assert match, "the kernel declares no enum Bug"
    return {name: number for number, name in enumerate(re.findall(r"\w+", match[1]))}


def outcome(
    run: Callable[[EmulatedDevice, int], Floats], mode: Mode, bug: int, expected: Floats, tolerance: float
) -> tuple[Outcome, str]:
    """(how it was noticed, what the emulator said)."""
    try:
        found = run(EmulatedDevice(mode), bug)
    except DeviceError as error:
        return "report", str(error)
    wrong = not np.isfinite(found).all() or bool((np.abs(found - expected) > tolerance).any())
    return ("result" if wrong else "missed"), ""
