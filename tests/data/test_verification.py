"""What was verified on GPUs, as it is committed: every line can be read, and everything was right."""

import json

import pytest

from attention.verify.kernel import KernelResult
from microbench import paths
from microbench.verify.results import ProbeResult, Result, WrappersResult, committed


@pytest.mark.parametrize("kind", [ProbeResult, WrappersResult, KernelResult])
def test_every_committed_result_is_right(kind: type[Result]) -> None:
    assert [row.subject for row in committed(kind) if not row.ok] == []
    assert committed(kind)


def test_every_case_of_the_older_comparisons_agrees() -> None:
    for file in (paths.SHIPPED / "verification").glob("differential-*.jsonl"):
        assert {json.loads(line)["verdict"] for line in file.read_text().splitlines()} == {"agrees"}
