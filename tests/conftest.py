"""Tests read the data that the project ships, never what this machine measured: bench and test pass in either order."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.shipped_data import lay_out

ROOT = Path(__file__).resolve().parents[1]
VARIABLE = "SMSCOPE_DATA"  # microbench.paths reads it when it is imported, in this process and in those of the tests
WORKER = "PYTEST_XDIST_WORKER"  # of pytest-xdist, whose first process has laid the data out

# Hypothesis asserts times by default, of an example and of drawing one: a busy machine fails what is right.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# Not in pytest_configure: a folder's own conftest.py is imported before that, and microbench.paths with it.
if WORKER not in os.environ:
    FOLDER = Path(tempfile.mkdtemp(prefix="smscope-data-"))
    os.environ[VARIABLE] = str(lay_out(ROOT, FOLDER))


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder of this session for all workers of pytest-xdist, which keep theirs side by side."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if WORKER in os.environ else own


def pytest_configure(config: pytest.Config) -> None:
    # Torch's threads would spin after each call, on the cores that the other workers need.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("MPLBACKEND", "Agg")
    if WORKER not in os.environ:
        config.add_cleanup(lambda: shutil.rmtree(FOLDER, ignore_errors=True))
