"""Bugs planted by someone who had not read the emulator: only the PTX ISA and the wrappers' bodies for a GPU.

At the first run every mode found 12 of the 12 in blind.cu and 7 of the 12 in blind_meaner.cu: 17 by a report, two
(SHUFFLE_TOO_SHORT, IN_PLACE) by a wrong result alone. The right kernels were right, and nothing of them was reported;
but blind_meaner.cu did not build before the emulator had a __threadfence.

How blind: notes on the emulator's design, the reports that the bugs in the attention kernels bring, and an earlier
table of twenty such bugs with their outcomes had been seen, its kernels not. RELEASES_THE_WRONG_STAGE first hung at
once, as it would have on a GPU, and was sharpened after that run.

What each mode says today is data/verification/blind_bugs.csv, which `smscope verify --device emulated:<arch>` writes.
"""

import numpy as np
import pytest

from microbench.compile import compile_source
from microbench.emulator import MODES, EmulatedDevice
from microbench.verify import tables
from microbench.verify.blind.cases import KERNELS, SOURCES
from microbench.verify.blind.found import bug_numbers, observed
from microbench.verify.tables import MISSED, BlindRow

ROWS = {row.bug: row for row in tables.read(BlindRow) if row.kernel in KERNELS}

# Known limits: what a mode does not find, and why. Whoever lifts one takes its line away.
LIMITS = {
    "BLOCK_ORDER": "The eager mode runs blocks by number: the last one finishes last, and an atomic orders the two.",
    "FRAGMENT_REUSED": "wgmma.fence is asked for after writes of the accumulators, not of a fragment in registers.",
    "READ_BACK_TOO_SOON": "Where the reads of a bulk store are waited for, its writes are finished as well.",
    "ZEROED_WITHOUT_FENCE": "A proxy fence is asked for before a read through the async proxy, not before a write.",
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_right_kernel_is_right_and_unreported(kernel: str) -> None:
    devices = [EmulatedDevice("eager"), EmulatedDevice("lazy"), *(EmulatedDevice("random", seed) for seed in range(8))]
    for device in devices:
        np.testing.assert_array_equal(*KERNELS[kernel].launch(device, 0), err_msg=device.mode)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_right_kernel_compiles_for_its_gpu(kernel: str) -> None:
    case = KERNELS[kernel]
    assert compile_source(SOURCES[case.file], case.file, case.arch, kernel=kernel).instructions()


@pytest.mark.parametrize("bug", ROWS)
def test_a_bug_ends_as_the_table_says(bug: str) -> None:
    row = ROWS[bug]
    assert tuple(observed(row.kernel, bug, mode) for mode in MODES) == row.today


def test_every_bug_of_the_sources_has_its_row() -> None:
    planted = {(file, bug) for file, text in SOURCES.items() for bug in bug_numbers(text) if bug != "NONE"}
    assert planted == {(row.file, row.bug) for row in ROWS.values()}
    assert [row.bug for row in ROWS.values()] == [bug for case in KERNELS.values() for bug in case.bugs]


def test_what_is_missed_is_a_known_limit() -> None:
    assert {bug for bug, row in ROWS.items() if MISSED in row.today} == set(LIMITS)


@pytest.mark.parametrize(("file", "found"), [("blind.cu", 12), ("blind_meaner.cu", 7)])
def test_the_first_run_stays_on_record(file: str, found: int) -> None:
    rows = [row for row in ROWS.values() if row.file == file]
    assert [sum(modes) for modes in zip(*(row.found_first for row in rows), strict=True)] == [found] * len(MODES)
    assert len(rows) == 12
