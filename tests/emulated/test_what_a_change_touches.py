"""What a change touches, counted: a probe, a variant, a feature, a GPU are added to a copy of the tree, and it runs.

A pass is added from a temporary folder: tests/cpu/test_passes.py.
"""

import json
import os
import re
import shutil
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest

from tests.elsewhere import ROOT, python

ROOMS = ROOT / "tests" / "rooms"
COPIED = ("attention", "data", "docs", "microbench", "smscope")
FILES = ("README.md", "CONTRIBUTING.md", "pyproject.toml")


@dataclass(frozen=True)
class Tree:
    """A copy of the project: `files` as they were."""

    root: Path
    files: dict[str, str]

    def run(self, *command: str) -> str:
        """What Python prints with the copy in the tree's place, which must succeed."""
        path = os.pathsep.join((str(self.root), str(ROOT)))
        own = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "SMSCOPE_DATA": ""}
        done = python(*command, cwd=self.root, **own)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def touched(self) -> set[str]:
        """Every file that is new, or another than it was."""
        return {name for name, digest in digests(self.root).items() if self.files.get(name) != digest}


def digests(root: Path) -> dict[str, str]:
    files = (file for file in root.rglob("*") if file.is_file())
    return {file.relative_to(root).as_posix(): sha256(file.read_bytes()).hexdigest() for file in files}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    for folder in COPIED:
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "commit.json"))
    for name in FILES:
        shutil.copy(ROOT / name, tmp_path)
    return Tree(tmp_path, digests(tmp_path))


def test_a_probe_is_two_files_and_a_table_of_its_own(tree: Tree) -> None:
    """The one that CONTRIBUTING shows; no page counts probes."""
    section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## A new probe")[2]
    stem = "microbench/probes/arithmetic/fadd_latency"
    for kind, suffix in (("cuda", ".cu"), ("python", ".py")):
        block = re.search(rf"```{kind}\n(.*?)```", section, re.DOTALL)
        assert block
        (tree.root / f"{stem}{suffix}").write_text(re.sub(r"^   ", "", block[1], flags=re.MULTILINE))
    tree.run("-m", "microbench", "check", "--only", "fadd_latency", "--write")
    tree.run("-m", "microbench", "run", "--device", "emulated:sm90a", "--only", "fadd_latency")
    tree.run("-m", "smscope.readme")
    assert tree.touched() == {f"{stem}.cu", f"{stem}.py", "data/verification/probes/fadd_latency.csv"}


def test_a_variant_is_one_folder(tree: Tree) -> None:
    """Another configuration space over the same kernel: found, chosen, explained and compiled by its path."""
    kernels = tree.root / "attention" / "kernels" / "sm80" / "forward"
    shutil.copytree(kernels / "software_pipelined", kernels / "four_warps")
    for file in (kernels / "four_warps").glob("*.py"):
        text = file.read_text().replace(".software_pipelined", ".four_warps")
        file.write_text(text.replace('("warps", (4, 8))', '("warps", (4,))'))
    said = json.loads(tree.run("-W", "ignore", str(ROOMS / "use_the_variant.py")))
    assert said == {"configs": 4, "picked": "sm80/forward/four_warps", "warps": 4, "spills": False}
    assert {name.rpartition("/")[0] for name in tree.touched()} == {"attention/kernels/sm80/forward/four_warps"}


def test_a_feature_is_two_files(tree: Tree) -> None:
    added = sorted((ROOMS / "feature").iterdir())
    assert [file.suffix for file in added] == [".cuh", ".py"] and len({file.stem for file in added}) == 1
    for file in added:
        shutil.copy(file, tree.root / "attention" / "features")
    # The data beside the tree are of the kernels without it: `make profile` would compile them again.
    tree.run("-W", "ignore", str(ROOMS / "use_the_feature.py"))
    assert tree.touched() == {f"attention/features/{file.name}" for file in added}


def test_a_gpu_is_a_run_and_a_profile(tree: Tree) -> None:
    """And, where a page lists machines, its generated line."""
    known, new = "h200-sxm-141gb", "h200-nvl-141gb"
    (tree.root / "data" / "runs" / new).mkdir()
    for file in sorted((tree.root / "data" / "runs" / known).glob("*.jsonl"))[:1]:
        (tree.root / "data" / "runs" / new / file.name).write_text(file.read_text().replace(known, new))
    tree.run("-m", "microbench", "profile", new)
    tree.run("-m", "smscope.readme")
    assert f'"{new}"' in tree.run("-m", "microbench", "show", new, "--json")
    data = {name for name in tree.touched() if name.startswith("data/")}
    assert data == {f"data/runs/{new}/{file.name}", f"data/profiles/{new}.json"}
    assert tree.touched() - data <= {"README.md"}
