"""What each mode of the emulator says of each planted bug: data/verification/blind_bugs.csv.

What the first run found stays as it is.
"""

import re
from collections.abc import Sequence

import numpy as np

from microbench.console.progress import watching
from microbench.emulator import MODES, EmulatedDevice, Mode
from microbench.errors import DeviceError
from microbench.verify import tables
from microbench.verify.blind.cases import KERNELS, SOURCES
from microbench.verify.tables import MISSED, BlindRow

WRONG = "wrong result"
RIGHT = "NONE"  # the bug of the right kernel


def bug_numbers(source: str) -> dict[str, int]:
    """The names of a kernel's `enum Bug`, in order; RIGHT is 0."""
    match = re.search(r"enum Bug \{([^}]*)\}", source)
    assert match, "the kernel declares no enum Bug"
    return {name: number for number, name in enumerate(re.findall(r"\w+", match[1]))}


def observed(kernel: str, bug: str, mode: Mode) -> str:
    """The head of the report, before addresses and threads; WRONG where only the result shows it; or MISSED."""
    case = KERNELS[kernel]
    try:
        found, expected = case.launch(EmulatedDevice(mode), bug_numbers(SOURCES[case.file])[bug])
    except DeviceError as error:
        return head_of(str(error), kernel)
    return MISSED if np.array_equal(found, expected) else WRONG


def head_of(report: str, kernel: str) -> str:
    """What a report of the emulator begins with, before addresses and threads."""
    whole = r"wgmma|tcgen05\.mma\.kind::\w+|mbarrier at 0x\w+"
    head = re.search(rf"stopped {kernel}: ((?:{whole}): [^,[]+|[^,:[]+)", report)
    assert head, report
    return re.sub(r" at 0x\w+| (?:matrix )?descriptor 0x\w+:", "", head[1]).strip()


def rows_of(kernels: Sequence[str]) -> tuple[BlindRow, ...]:
    """Every bug of these kernels, as it ends today. Raises DeviceError where a right one is not left alone."""
    first = {row.bug: row.first_run for row in _committed()}
    rows = []
    with watching(len(kernels)) as watcher:
        for name in kernels:
            watcher.doing("planted bugs", name)
            case = KERNELS[name]
            for mode in MODES:
                if (said := observed(name, RIGHT, mode)) != MISSED:
                    raise DeviceError(f"The emulator's mode {mode} says of {name}, which has no bug: {said}.")
            for bug in case.bugs:
                says = {mode: observed(name, bug, mode) for mode in MODES}
                found = first.get(bug, " ".join(mode for mode in MODES if says[mode] != MISSED))
                rows.append(BlindRow(file=case.file, kernel=name, arch=case.arch, bug=bug, first_run=found, **says))
            watcher.finished()
    return tuple(rows)


def write(rows: Sequence[BlindRow]) -> None:
    """Put these in the place of their kernels' rows in the table of this checkout; rows of others stay behind them."""
    every = (*_committed(), *rows)
    names = dict.fromkeys((*KERNELS, *(row.kernel for row in every)))
    by_kernel = {name: [row for row in every if row.kernel == name] for name in names}
    latest = ({row.bug: row for row in found} for found in by_kernel.values())
    tables.write(BlindRow, [row for found in latest for row in found.values()])


def _committed() -> tuple[BlindRow, ...]:
    """None where a wheel holds no table."""
    return tables.read(BlindRow) if tables.path(BlindRow).exists() else ()
