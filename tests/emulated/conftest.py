"""Emulated kernels: skipped, with the reason, where no C++ compiler is."""

from pathlib import Path

import pytest
from filelock import FileLock

from microbench.emulator import toolchain
from microbench.errors import EnvironmentLacks


@pytest.fixture(autouse=True, scope="session")
def emulator(shared_folder: Path) -> None:
    """The runtime, built before the first test needs it, and once where several processes test."""
    try:
        with FileLock(shared_folder / "emulator.lock"):
            toolchain.runtime()
    except EnvironmentLacks as error:
        pytest.skip(str(error))
