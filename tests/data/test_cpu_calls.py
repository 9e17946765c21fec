"""The hundred calls that were timed on each claimed CPU, and what is promised of them, recomputed from the rows."""

import pytest

from attention.compare.calls import results, shapes
from microbench import paths

# The run of each machine that is claimed; whoever measures again appends, and changes nothing here.
CLAIMED = {
    "host-amd-epyc-f25m17-2c": "2026-11-22T14:51:50+00:00",
    "host-intel-xeon-f6m207-16c": "2026-11-22T14:44:03+00:00",
}


def rows(gpu):
    found, problems = results.read(paths.SHIPPED / "attention" / f"{gpu}-calls.jsonl")
    assert not problems
    return [row for row in found if row.run == CLAIMED[gpu]]


@pytest.mark.parametrize("gpu", CLAIMED)
def test_the_calls_are_those_that_the_seed_draws(gpu):
    assert {row.seed for row in rows(gpu)} == {shapes.SEED}
    assert [(row.kind, row.problem) for row in rows(gpu)] == shapes.drawn()


@pytest.mark.parametrize("gpu", CLAIMED)
def test_every_result_was_torchs_and_every_interval_holds_its_median(gpu):
    for row in rows(gpu):
        assert row.low <= row.seconds <= row.high and row.torch_low <= row.torch_seconds <= row.torch_high
        assert row.rounds >= 41 and not row.dirty


@pytest.mark.parametrize("gpu", CLAIMED)
def test_nobody_loses(gpu):
    ratios = sorted(row.torch_seconds / row.seconds for row in rows(gpu))
    assert len(ratios) == 100 and ratios[0] >= 0.85 and ratios[5] >= 0.95
    assert results.verdict(rows(gpu)).holds
