"""Mistakes planted in the source of a forward kernel: what is altered stays beside what replaces it, in one build."""

import ctypes
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path

from microbench.emulator import EmulatedDevice, Mode
from microbench.errors import DeviceError
from microbench.verify.blind import found as found_blind
from microbench.verify.tables import MISSED
from tests.emulated.forward_case import ForwardCase, Outputs, inputs_of, judge
from tests.emulated.forward_launch import Kernel

WRONG = "^out: "
SWITCH = 'static int planted;\nextern "C" void plant(int bug) { planted = bug; }\n'


@dataclass(frozen=True)
class Bug:
    """`right`, at its first place behind `after` in `file`, becomes `wrong`: a statement, or an expression.

    `says` is found in the emulator's report or, where the kernel breaks none of its rules, in what the oracle says.
    `build` is that of several which the mistake is in. Where `case` is None, it is the test's own. A mistake of several
    places has the other ones in `also`.
    """

    file: str
    after: str
    right: str
    wrong: str = ";"
    says: str = WRONG
    case: ForwardCase | None = None
    build: int = 0
    also: tuple["Bug", ...] = ()


def inlined(name: str, include: tuple[Path, ...], bugs: Collection[Bug] = (), seen: set[str] | None = None) -> str:
    """A file of a kernel with its own headers written out, and the mistakes planted in it, numbered from 1."""
    seen = set() if seen is None else seen
    text = next(folder / name for folder in include if (folder / name).exists()).read_text()
    for number, bug in enumerate(bugs, 1):
        for edit in (bug, *bug.also):
            if edit.file == name:
                at = text.index(edit.right, text.index(edit.after))
                statement = edit.right.endswith(";")
                choice = "if (planted == {}) {{ {} }} else {{ {} }}" if statement else "(planted == {} ? {} : {})"
                text = text[:at] + choice.format(number, edit.wrong, edit.right) + text[at + len(edit.right) :]

    def included(match: re.Match[str]) -> str:
        header = match[1]
        if header.startswith("ptx/"):
            return match[0]
        return "" if header in seen else (seen.add(header) or inlined(header, include, bugs, seen))

    return re.sub(r'^#include "([^"]+)"$', included, text.replace("#pragma once\n", ""), flags=re.MULTILINE)


def planted(kernel: Kernel, file: str, bugs: Collection[Bug]) -> Kernel:
    """The kernel with all of them; `plant` arms one."""
    return replace(kernel, source=SWITCH + inlined(file, kernel.include, bugs))


def outcome(
    run: Callable[..., Outputs], kernel: Kernel, mode: Mode, case: ForwardCase, number: int, **schedule: int
) -> str:
    """What is wrong with one mistake armed; 0 is no mistake."""
    kernel.library().plant(ctypes.c_int(number))
    return wrong_of(run, kernel, mode, case, **schedule)


def wrong_of(run: Callable[..., Outputs], kernel: Kernel, mode: Mode, case: ForwardCase, **schedule: int) -> str:
    """What the emulator reports, or else what is wrong with the outputs; empty where nothing is."""
    device, inputs = EmulatedDevice(mode), inputs_of(case)
    try:
        return judge(case, inputs, run(device, case, kernel, inputs=inputs, **schedule))
    except DeviceError as error:
        return str(error)


def said(found: str, kernel: str) -> str:
    """A report's head, or what the table of blind bugs calls an outcome that only the results show."""
    if not found:
        return MISSED
    return found_blind.WRONG if found.startswith(("out:", "lse:", "wrote")) else found_blind.head_of(found, kernel)
