"""These tests compile into a cache of their own, never into the user's."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from microbench import paths


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all workers of pytest-xdist, which keep theirs side by side; entries appear in it whole."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "cubins"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(autouse=True)
def private_cache(shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """So that a kernel which several tests read is compiled once."""
    monkeypatch.setenv(paths.CACHE_VARIABLE, str(shared_cache))
    yield shared_cache
