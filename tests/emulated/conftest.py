"""Emulated kernels: skipped, with the reason, where no C++ compiler is."""

import pytest

from microbench.emulator import toolchain
from microbench.errors import EnvironmentLacks


@pytest.fixture(autouse=True, scope="session")
def emulator() -> None:
    """The runtime, built before the first test needs it."""
    try:
        toolchain.runtime()
    except EnvironmentLacks as error:
        pytest.skip(str(error))
