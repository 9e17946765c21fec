"""What was verified on GPUs, as it is committed: every line can be read, and everything was right."""

import json
from pathlib import Path

import pytest

from attention.timed.identity import text_sha256
from attention.verify.kernel import KernelResult
from microbench import paths
from microbench.verify.results import ProbeResult, Result, WrappersResult, committed


@pytest.mark.parametrize("kind", [ProbeResult, WrappersResult, KernelResult])
def test_what_was_verified_last_is_right(kind: type[Result]) -> None:
    """A run that found something stays on file, before the one that found it mended.

    Where the kernel was mended and has not run again, what was found is of an earlier text, and README says so.
    """
    last = {(row.gpu, row.subject): row for row in committed(kind)}
    assert last and [row.subject for row in last.values() if not row.ok and not mended(row)] == []
    said = (Path(__file__).parents[2] / "README.md").read_text()
    for row in last.values():
        if isinstance(row, KernelResult) and not row.ok:
            assert f"| {row.right} of {row.problems} problems on {row.gpu} (an earlier text)" in said


def mended(row: Result) -> bool:
    """Whether a kernel's text is another one since."""
    return isinstance(row, KernelResult) and row.text_sha256 != text_sha256(row.kernel)


def test_every_case_of_the_older_comparisons_agrees() -> None:
    for file in (paths.SHIPPED / "verification").glob("differential-*.jsonl"):
        assert {json.loads(line)["verdict"] for line in file.read_text().splitlines()} == {"agrees"}
