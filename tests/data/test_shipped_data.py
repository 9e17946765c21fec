"""What this machine measured is no test's business: the tests' data/ is what git knows, or what the README names."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from microbench import paths
from microbench.results.profile import available
from tests.shipped_data import MEASURED, lay_out

KNOWN, NEW = "h100-sxm-80gb", "host-intel-xeon-f6m106-4c"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clone with one known machine, on which `make bench` has since measured it again, and a new one."""
    root = tmp_path / "clone"
    for name in (*MEASURED, "published"):
        (root / "data" / name).mkdir(parents=True)
    write(root, KNOWN, "committed")
    (root / "README.md").write_text(f"run on {KNOWN}\n")
    (root / "data" / "published" / "facts.csv").write_text("a,b\n")
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", "-C", str(root), *command], check=True)
    write(root, NEW, "measured")
    return root


def write(root: Path, slug: str, text: str) -> None:
    (root / "data" / "runs" / slug).mkdir(exist_ok=True)
    places = (f"runs/{slug}/{text}.jsonl", f"profiles/{slug}.json", f"attention/{slug}-ladder.jsonl")
    for file in (*places, f"corrections/{slug}.json"):
        (root / "data" / file).write_text(text)


def files(data: Path) -> set[str]:
    return {
        str(Path(folder, file).relative_to(data))
        for folder, _, names in os.walk(data, followlinks=True)
        for file in names
    }


EXPECTED = {
    f"runs/{KNOWN}/committed.jsonl",
    f"profiles/{KNOWN}.json",
    f"attention/{KNOWN}-ladder.jsonl",
    f"corrections/{KNOWN}.json",
    "published/facts.csv",
}


def test_a_new_machine_is_not_among_the_tests_data(checkout: Path, tmp_path: Path) -> None:
    assert files(lay_out(checkout, tmp_path / "copy")) == EXPECTED


def test_a_known_machine_measured_again_is_as_git_has_it(checkout: Path, tmp_path: Path) -> None:
    write(checkout, KNOWN, "measured")
    data = lay_out(checkout, tmp_path / "copy")
    assert files(data) == EXPECTED and (data / "profiles" / f"{KNOWN}.json").read_text() == "committed"


def test_what_is_added_is_tested_before_it_is_committed(checkout: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "-C", str(checkout), "add", "."], check=True)
    assert f"profiles/{NEW}.json" in files(lay_out(checkout, tmp_path / "copy"))


def test_without_git_the_machines_are_those_that_the_readme_names(checkout: Path, tmp_path: Path) -> None:
    shutil.rmtree(checkout / ".git")
    assert files(lay_out(checkout, tmp_path / "copy")) == EXPECTED


def test_the_tests_and_their_processes_read_and_write_there() -> None:
    assert paths.SHIPPED == paths.writable_data() == Path(os.environ[paths.DATA_VARIABLE])
    assert paths.CHECKOUT is not None and paths.CHECKOUT / "data" not in paths.data_roots()
    command = ["git", "-C", str(paths.CHECKOUT), "ls-files", "data/profiles"]
    tracked = subprocess.run(command, capture_output=True, text=True)
    if tracked.stdout:
        assert available() == sorted(Path(line).stem for line in tracked.stdout.splitlines())
