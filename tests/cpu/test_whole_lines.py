"""Which blocks of the decode kernel bring whole lines: those that have an SM each, of rows that share lines."""

from dataclasses import replace

import pytest

from attention.kernels.sm80.forward.split_keys.arguments import MOST_IN_STEP, SETTLED, build_of
from attention.problem import AttentionProblem
from attention.variant import Config, settle

PROBLEM = AttentionProblem(1, 33, 33, 1, 8000, 96, dtype="bfloat16", device="cuda")


def are_whole(problem: AttentionProblem, key_splits: int = 4, warps: int = 4) -> bool:
    values = (("warps", warps), ("tile_keys", 64), ("key_splits", key_splits), ("key_stages", 3))
    config = Config(values)
    settled = bool(settle(SETTLED, problem, config)["whole_lines"])
    assert (("WHOLE_LINES", 1) in build_of(problem, config).defines) == settled
    return settled


def test_as_many_blocks_as_an_h200_has_sms_bring_whole_lines_and_more_do_not() -> None:
    assert PROBLEM.heads_kv * 4 == MOST_IN_STEP
    assert are_whole(PROBLEM) and not are_whole(PROBLEM, 8) and not are_whole(replace(PROBLEM, batch=2))
    assert are_whole(replace(PROBLEM, batch=4), 1)


def test_heads_of_a_group_are_one_block() -> None:
    group = replace(PROBLEM, heads_q=8 * 33)
    assert are_whole(group)
    assert not are_whole(replace(group, alibi=True))  # which is of one head


@pytest.mark.parametrize(("head_dim", "value_dim", "wanted"), [(128, 128, False), (120, 120, False), (128, 48, True)])
def test_rows_of_whole_lines_share_none(head_dim: int, value_dim: int, wanted: bool) -> None:
    assert are_whole(replace(PROBLEM, head_dim=head_dim, head_dim_v=value_dim)) == wanted


def test_warps_with_rows_of_their_own_copy_otherwise() -> None:
    assert not are_whole(replace(PROBLEM, seq_q=64, heads_q=4, heads_kv=4), 1)
