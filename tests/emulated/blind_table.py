"""data/verification/blind_bugs.csv: which planted bugs of blind.cu and blind_meaner.cu each mode finds.

`python -m tests.emulated.blind_table` runs them all and writes it again; what the first run found stays as it is.
"""

import re

import numpy as np

from microbench.emulator import MODES, EmulatedDevice, Mode
from microbench.errors import DeviceError
from microbench.verify import tables
from microbench.verify.tables import MISSED, BlindRow
from tests.emulated.blind_cases import KERNELS, SOURCES
from tests.emulated.planted import bug_numbers

WRONG = "wrong result"


def observed(kernel: str, bug: str, mode: Mode) -> str:
    """The head of the report, before addresses and threads; WRONG where only the result shows it; or MISSED."""
    case = KERNELS[kernel]
    try:
        found, expected = case.launch(EmulatedDevice(mode), bug_numbers(SOURCES[case.file])[bug])
    except DeviceError as error:
        head = re.search(rf"stopped {kernel}: (wgmma: [^,[]+|[^,:[]+)", str(error))
        assert head, str(error)
        return head[1].strip()
    return MISSED if np.array_equal(found, expected) else WRONG


def measured() -> tuple[BlindRow, ...]:
    """Every bug, as it ends today."""
    first = {row.bug: row.first_run for row in tables.read(BlindRow)} if tables.path(BlindRow).exists() else {}
    rows = []
    for name, case in KERNELS.items():
        for bug in case.bugs:
            says = {mode: observed(name, bug, mode) for mode in MODES}
            found = " ".join(mode for mode in MODES if says[mode] != MISSED)
            rows.append(
                BlindRow(
                    file=case.file,
                    kernel=name,
                    arch=case.arch,
                    bug=bug,
                    first_run=first.get(bug, found),
                    eager=says["eager"],
                    lazy=says["lazy"],
                    random=says["random"],
                )
            )
    return tuple(rows)


if __name__ == "__main__":
    print(f"Wrote {tables.write(BlindRow, measured())}.")
