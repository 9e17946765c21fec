"""Runs of these tests write into a folder of their own, never into data/."""

from pathlib import Path

import pytest

from microbench import paths


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder that stands for data/, and a cache folder of its own."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setattr(paths, "writable_data", lambda: folder)
    monkeypatch.setattr(paths, "data_roots", lambda: [folder])
    return folder
