import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from microbench.machine import stamp
from microbench.machine.stamp import Commit

QUIET = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
WHO = {f"GIT_{who}_{what}": "t@t" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, **QUIET, **WHO}
    ).stdout


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout of both packages with one commit."""
    root = tmp_path / "tree"
    for name in ("microbench/a.py", "microbench/p/k.cu", "attention/b.cuh", "data/runs/r.jsonl"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    shutil.copy(stamp.ROOT / stamp.ARCHIVE, root / stamp.ARCHIVE)
    shutil.copy(stamp.ROOT / ".gitattributes", root)
    (root / ".gitignore").write_text(f"{stamp.STAMP}\n")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "first")
    return root


@pytest.fixture
def head(tree: Path) -> str:
    return git(tree, "rev-parse", "HEAD").strip()


@pytest.fixture
def copied(tree: Path) -> Path:
    """The same tree with its stamp and without .git."""
    assert stamp.write(tree) == tree / stamp.STAMP
    shutil.rmtree(tree / ".git")
    return tree


def test_a_checkout_asks_git(tree: Path, head: str) -> None:
    assert stamp.commit_of(tree) == Commit(head, False)


@pytest.mark.parametrize("name", ["microbench/a.py", "attention/b.cuh", "microbench/p/new.cu"])
def test_a_changed_or_new_source_is_dirty(tree: Path, head: str, name: str) -> None:
    (tree / name).write_text("changed")
    assert stamp.commit_of(tree) == Commit(head, True)


def test_measuring_dirties_nothing(tree: Path, head: str) -> None:
    (tree / "data/runs/r.jsonl").write_text("a new run")
    (tree / "data/runs/s.jsonl").write_text("another")
    assert stamp.commit_of(tree) == Commit(head, False)


def test_a_copy_without_git_knows_its_commit(head: str, copied: Path) -> None:
    assert stamp.commit_of(copied) == Commit(head, False)


@pytest.mark.parametrize("name", ["microbench/a.py", "microbench/p/k.cu", "attention/new.hpp"])
def test_a_source_edited_after_the_stamp_is_dirty(head: str, copied: Path, name: str) -> None:
    (copied / name).write_text("changed")
    assert stamp.commit_of(copied) == Commit(head, True)


def test_a_source_removed_or_renamed_after_the_stamp_is_dirty(head: str, copied: Path) -> None:
    (copied / "microbench/a.py").rename(copied / "microbench/z.py")
    assert stamp.commit_of(copied) == Commit(head, True)


def test_a_stamp_of_a_dirty_tree_stays_dirty(tree: Path, head: str) -> None:
    (tree / "microbench/a.py").write_text("changed")
    stamp.write(tree)
    shutil.rmtree(tree / ".git")
    assert stamp.commit_of(tree) == Commit(head, True)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"sha": 1}', json.dumps({"sha": "a", "dirty": False, "more": 1})])
def test_an_unreadable_stamp_is_no_stamp(copied: Path, text: str) -> None:
    (copied / stamp.STAMP).write_text(text)
    assert stamp.commit_of(copied) == Commit(None, None)


def test_an_archive_of_git_knows_its_commit(tree: Path, head: str, tmp_path: Path) -> None:
    archive = tmp_path / "tree.tar"
    git(tree, "archive", "--output", str(archive), "HEAD")
    shutil.unpack_archive(archive, tmp_path / "unpacked", filter="data")
    assert stamp.commit_of(tmp_path / "unpacked") == Commit(head, None)


def test_a_folder_inside_anothers_checkout_does_not_take_its_commit(tree: Path) -> None:
    inner = tree / "site-packages"
    (inner / "microbench").mkdir(parents=True)
    assert stamp.commit_of(inner) == Commit(None, None) and stamp.write(inner) is None


def test_a_checkout_without_a_commit_leaves_no_stamp(tmp_path: Path) -> None:
    (tmp_path / "microbench").mkdir()
    git(tmp_path, "init", "-q")
    assert stamp.write(tmp_path) is None and stamp.commit_of(tmp_path) == Commit(None, None)
