"""These tests compile into a cache of their own, never into the user's."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from microbench import compile as compiling
from microbench import paths
from microbench.compile import Cubin
from microbench.machine.arch import by_name


@pytest.fixture(scope="session")
def shared_cache(shared_folder: Path) -> Path:
    """Of all workers; entries appear in it whole."""
    folder = shared_folder / "cubins"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(autouse=True)
def private_cache(shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """So that a kernel which several tests read is compiled once."""
    monkeypatch.setenv(paths.CACHE_VARIABLE, str(shared_cache))
    yield shared_cache


@pytest.fixture(autouse=True)
def unnoted_blackwell(monkeypatch: pytest.MonkeyPatch) -> None:
    """No build with tcgen05 that a test here compiles may have a note of ptxas; matrices see to their own processes."""
    made = compiling.cached

    def unnoted(*given: Any, **named: Any) -> Cubin:
        cubin = made(*given, **named)
        assert "tcgen05" not in by_name(cubin.arch).features or not cubin.notes, cubin.log
        return cubin

    monkeypatch.setattr(compiling, "cached", unnoted)
