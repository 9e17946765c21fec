"""What was verified on GPUs, as it is committed: every line can be read, and everything was right."""

import json

import pytest

from attention.verify.kernel import KernelResult
from microbench import paths
from microbench.verify.results import ProbeResult, Result, WrappersResult, committed


@pytest.mark.parametrize("kind", [ProbeResult, WrappersResult, KernelResult])
def test_what_was_verified_last_is_right(kind: type[Result]) -> None:
    """A run that found something stays on file, before the one that found it mended."""
    last = {(row.gpu, row.subject): row for row in committed(kind)}
    assert last and [row.subject for row in last.values() if not row.ok] == []


def test_every_case_of_the_older_comparisons_agrees() -> None:
    for file in (paths.SHIPPED / "verification").glob("differential-*.jsonl"):
        assert {json.loads(line)["verdict"] for line in file.read_text().splitlines()} == {"agrees"}
