"""The GPU and the emulator make the same of the same inputs: every wrapper, layout and swizzle, 200 seeds each."""

import pytest

from microbench.machine import nvml
from microbench.verify import results
from microbench.verify.differential import compare

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]


@pytest.mark.parametrize("name", compare.NAMES)
def test_gpu_and_emulator_agree(gpu: nvml.Gpu, name: str) -> None:
    (row,) = compare.verify((name,), gpu.index, results.where(gpu, quick=False))
    assert not row.failures
    assert row.cases or row.arch != "sm90a" or name == "tensor_memory"
