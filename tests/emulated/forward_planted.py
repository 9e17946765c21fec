"""Mistakes planted in the source of a forward kernel, all of them in one build: a number chooses.

What is altered stays beside what replaces it, so that a mistake costs a launch and no compiler.
"""

import ctypes
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from attention.problem import AttentionProblem
from attention.variant import Config
from microbench.emulator import EmulatedDevice, Mode
from microbench.errors import DeviceError
from tests.emulated.forward_case import ForwardCase, Outputs, inputs_of, judge
from tests.emulated.forward_launch import Kernel

SWITCH = 'static int planted;\nextern "C" void plant(int bug) { planted = bug; }\n'


@dataclass(frozen=True)
class Bug:
    """`right`, at its first place behind `after` in `file`, becomes `wrong`: a statement, or an expression.

    `says` is found in the emulator's report or, where the kernel breaks none of its rules, in what the oracle says.
    `build` is that of several which the mistake is in. Where `case` is None, it is the build's own.
    """

    file: str
    after: str
    right: str
    wrong: str = ";"
    says: str = "^out: "
    case: ForwardCase | None = None
    build: int = 0


def inlined(kernel: Kernel, name: str, bugs: Mapping[str, Bug], seen: set[str] | None = None) -> str:
    """A file of the kernel with its own headers written out, and the mistakes planted in it."""
    seen = set() if seen is None else seen
    text = next(folder / name for folder in kernel.include if (folder / name).exists()).read_text()
    for number, bug in enumerate(bugs.values(), 1):
        if bug.file == name:
            at = text.index(bug.right, text.index(bug.after))
            choice = (
                "if (planted == {}) {{ {} }} else {{ {} }}" if bug.right.endswith(";") else "(planted == {} ? {} : {})"
            )
            text = text[:at] + choice.format(number, bug.wrong, bug.right) + text[at + len(bug.right) :]

    def included(match: re.Match[str]) -> str:
        header = match[1]
        if header.startswith("ptx/"):
            return match[0]
        return "" if header in seen else (seen.add(header) or inlined(kernel, header, bugs, seen))

    return re.sub(r'^#include "([^"]+)"$', included, text.replace("#pragma once\n", ""), flags=re.MULTILINE)


def planted(path: str, config: Config, problem: AttentionProblem, file: str, bugs: Mapping[str, Bug]) -> Kernel:
    """The kernel with all of them."""
    kernel = Kernel(path, config, problem)
    return Kernel(path, config, problem, source=SWITCH + inlined(kernel, file, bugs))


def outcome(
    mode: Mode, case: ForwardCase, number: int, kernel: Kernel, run: Callable[..., Outputs], **schedule: int
) -> str:
    """What the emulator reports, or else what is wrong with the outputs; empty where nothing is. 0 is no mistake."""
    device, inputs = EmulatedDevice(mode), inputs_of(case)
    kernel.library().plant(ctypes.c_int(number))
    try:
        return judge(case, inputs, run(device, case, kernel, inputs=inputs, **schedule))
    except DeviceError as error:
        return str(error)
