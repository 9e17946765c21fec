"""A freeze names a commit and what the model was at it; whatever is changed since is named."""

import subprocess
from pathlib import Path

import pytest

from attention.campaign import freeze
from attention.campaign.freeze import Freeze, Verdict
from microbench.errors import DataError, InputError
from microbench.machine import stamp
from tests.cpu.campaign_rows import GPU
from tests.cpu.imports import imported

MODEL = "attention/choose/model.py"
# What a pick by constants imports and does not rest on: how calls, errors, files and machines are told, and launches.
BESIDE = (
    *("attention/call.py", "attention/errors.py", "attention/forwarded.py", "attention/kernels/launch/"),
    *("microbench/bounds.py", "microbench/console/", "microbench/errors.py", "microbench/faults.py"),
    *("microbench/files.py", "microbench/machine/cpu.py", "microbench/machine/nvml.py", "microbench/paths.py"),
    *("microbench/point.py", "microbench/probe.py", "microbench/results/doubt.py", "microbench/results/record.py"),
    "microbench/results/rows.py",
)


def git(root: Path, *arguments: str) -> str:
    told = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
    return told.stdout.strip()


@pytest.fixture
def checkout(data: Path, tmp_path: Path) -> Path:
    """A checkout with a model of one file, and a profile."""
    root = tmp_path / "checkout"
    for name in (MODEL, f"data/profiles/{GPU}.json", "attention/compare/run.py"):
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    git(tmp_path, "init", "-q", str(root))
    git(root, "add", "-A")
    git(root, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "one")
    return root


def test_a_freeze_names_the_commit_and_the_files_of_the_model(checkout: Path) -> None:
    frozen, place = freeze.freeze(checkout, GPU)
    assert frozen.commit == git(checkout, "rev-parse", "HEAD") and place.name == f"freeze-{frozen.commit[:12]}.json"
    assert {*frozen.hashes} == {MODEL, f"data/profiles/{GPU}.json"}
    assert freeze.freezes() == (frozen,) == (freeze.named(frozen.commit[:7]),)
    freeze.require_unchanged(frozen, checkout)


@pytest.mark.parametrize("name", [MODEL, f"data/profiles/{GPU}.json", "attention/choose/terms.py"])
def test_whatever_is_changed_or_added_since_is_named(checkout: Path, name: str) -> None:
    frozen, _ = freeze.freeze(checkout, GPU)
    (checkout / "attention" / "compare" / "run.py").write_text("no part of the model")
    freeze.require_unchanged(frozen, checkout)
    (checkout / name).write_text("another")
    with pytest.raises(InputError, match=name):
        freeze.require_unchanged(frozen, checkout)


def test_what_is_not_committed_cannot_be_frozen(checkout: Path) -> None:
    (checkout / MODEL).write_text("another")
    with pytest.raises(InputError, match="not as HEAD has it"):
        freeze.freeze(checkout, GPU)


def test_a_boards_own_profile_which_git_ignores_cannot_be_frozen(checkout: Path) -> None:
    (checkout / ".git" / "info" / "exclude").write_text("/data/profiles/*--*.json\n")
    (checkout / "data" / "profiles" / f"{GPU}--6882419d.json").write_text("{}")
    with pytest.raises(InputError, match=r"6882419d\.json is in no commit; remove it"):
        freeze.freeze(checkout, GPU)


def test_without_git_there_is_no_commit_to_name(checkout: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    (bare / "data" / "profiles").mkdir(parents=True)
    (bare / "data" / "profiles" / f"{GPU}.json").write_text("{}")
    with pytest.raises(InputError, match="git names none here"):
        freeze.freeze(bare, GPU)


def test_a_freeze_has_one_verdict(checkout: Path) -> None:
    frozen, _ = freeze.freeze(checkout, GPU)
    verdict = Verdict(freeze=frozen.commit, commit=None, campaigns=(1, 2), hashes=frozen.hashes, lines=("a",))
    freeze.write(verdict)
    assert freeze.verdicts() == (verdict,)
    with pytest.raises(DataError, match="one verdict"):
        freeze.write(verdict)


def test_a_commit_that_names_no_freeze_is_refused(checkout: Path) -> None:
    with pytest.raises(InputError, match="names no one freeze"):
        freeze.named("abc")


def test_the_model_of_this_tree_is_in_a_freeze() -> None:
    found = freeze.hashes_of(stamp.ROOT, GPU)
    parts = ("attention/choose/shares.py", "attention/kernels/sm90a/forward/warp_specialised/variant.py")
    assert {MODEL, *parts, "attention/kernels/common/family.py", f"data/profiles/{GPU}.json"} < {*found}
    assert {file.rpartition(".")[2] for file in found} == {"py", "json"}


def test_a_file_that_is_gone_is_named() -> None:
    frozen = Freeze(gpu=GPU, commit="c" * 40, hashes={"a": "1", "b": "2"})
    assert freeze.changed(frozen, {"a": "1", "c": "3"}) == ("b", "c")


def test_a_freeze_holds_every_file_that_a_pick_by_constants_rests_on() -> None:
    root = stamp.ROOT
    frozen = {file for pattern in freeze.MODEL for file in root.glob(pattern)}
    variants = (root / "attention" / "kernels").glob("sm*/*/*/variant.py")
    picks = imported((root / "attention" / "choose" / "candidates.py", *variants), root)
    beside = {file.relative_to(root).as_posix() for file in picks - frozen}
    assert root / MODEL in picks and all(each.startswith(BESIDE) for each in beside)
    assert all(any(each.startswith(one) for each in beside) for one in BESIDE)
