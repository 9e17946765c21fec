"""The GPU and the emulator make the same of the same inputs: every wrapper, layout and swizzle, 200 seeds each.

Where the GPU's machine has no C++ compiler, SMSCOPE_EMULATED names the file that `differential emulate` wrote
elsewhere; without either the tests fail.
"""

import os
from pathlib import Path

import pytest

from microbench.machine import nvml
from microbench.verify.differential.catalogue import cases
from microbench.verify.differential.compare import compare
from microbench.verify.differential.rows import DifferentialRow

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def rows() -> list[DifferentialRow]:
    if (found := nvml.visible_gpus()[0].compute_capability) != (9, 0):
        pytest.skip(f"needs a Hopper GPU; this one has compute capability {found[0]}.{found[1]}")
    file = os.environ.get("SMSCOPE_EMULATED")
    return compare(Path(file) if file else None)


@pytest.mark.parametrize("wrapper", dict.fromkeys(case.wrapper for case in cases()))
def test_gpu_and_emulator_agree(rows: list[DifferentialRow], wrapper: str) -> None:
    assert not [row for row in rows if row.wrapper == wrapper and row.verdict != "agrees"]
