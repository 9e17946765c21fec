"""A feature is two files: with them alone it is named, computed, differentiated, compiled and executed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ROOT / "tests" / "rooms"


def test_a_feature_is_two_files_and_none_is_edited(tmp_path: Path) -> None:
    added = sorted((ROOMS / "feature").iterdir())
    assert [file.suffix for file in added] == [".cuh", ".py"] and len({file.stem for file in added}) == 1
    shutil.copytree(ROOT / "attention", tmp_path / "attention", ignore=shutil.ignore_patterns("__pycache__"))
    for file in added:
        shutil.copy(file, tmp_path / "attention" / "features")
    # The data beside the tree are of the kernels without it: `make profile` would compile them again.
    command = [sys.executable, "-W", "ignore", str(ROOMS / "use_the_feature.py")]
    path = os.pathsep.join((str(tmp_path), str(ROOT)))
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
