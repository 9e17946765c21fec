"""These tests need a GPU: without one they say so. What a run writes goes into a folder of the tests' own."""

import pytest

from microbench import clocks


@pytest.fixture(scope="session", autouse=True)
def gpu() -> clocks.Gpu:
    """The first GPU, as NVML describes it."""
    found = clocks.visible_gpus()
    if not found:
        pytest.skip(f"needs a GPU: {clocks.why_no_gpu()}")
    return found[0]
