"""These tests compile into a cache of their own, never into the user's."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from microbench import paths


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
