"""What a call costs the host, beside torch's own in the same run: ratios of an H200's newest run on file."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from microbench import paths

GPU = "h200-sxm-141gb"
MOST = {
    ("attention.sdpa", "torch sdpa"): 1.6,
    ("attention.sdpa with grad", "torch sdpa with grad"): 2.2,
    ("attention.sdpa, a default device set", "torch sdpa, a default device set"): 1.6,
    ("attention.flash_attn_func", "torch sdpa"): 1.6,
    ("attention.flash_attn_func with grad", "torch sdpa with grad"): 2.2,
}


@dataclass(frozen=True)
class Run:
    """Medians of one process, in microseconds, by call."""

    commit: str
    dirty: bool
    host_us: dict[str, float]


def newest() -> Run:
    rows = json.loads((paths.SHIPPED / "attention" / f"{GPU}-host-time.json").read_text())
    of_run: dict[str, dict[str, Any]] = {}
    for row in reversed(rows):  # a process appends each call once
        if row["call"] in of_run:
            break
        of_run[row["call"]] = row
    (commit,), (dirty,) = ({row[name] for row in of_run.values()} for name in ("commit", "dirty"))
    return Run(commit, dirty, {call: row["host_us"] for call, row in of_run.items()})


@pytest.mark.parametrize(("ours", "theirs"), MOST)
def test_a_call_costs_the_host_little_more_than_torchs(ours: str, theirs: str) -> None:
    host_us = newest().host_us
    assert host_us[ours] <= MOST[ours, theirs] * host_us[theirs]


def test_the_newest_run_is_of_committed_code() -> None:
    assert not newest().dirty and len(newest().commit) == 40
