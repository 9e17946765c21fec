"""These tests compile into a cache of their own, never into the user's."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from microbench import paths


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cubins")


@pytest.fixture(autouse=True)
def private_cache(shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """One folder for the session, so that a kernel which several tests read is compiled once."""
    monkeypatch.setenv(paths.CACHE_VARIABLE, str(shared_cache))
    yield shared_cache
