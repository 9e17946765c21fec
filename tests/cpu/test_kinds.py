"""Which problems lie near one another: blocks alike, and scores that cost alike."""

import math
from dataclasses import replace

from attention.choose.kinds import APART, kind_of, place_of
from attention.choose.sized import STEPS
from attention.problem import AttentionProblem
from attention.variant import by_path
from tests.cpu.warpgroup_tiles import OURS, PLAIN

ONE = AttentionProblem(4, 32, 8, 1, 2048, 128, dtype="bfloat16", device="cuda")
ON_HOST = by_path("host/forward/tiled_online_softmax")


def octaves(one: AttentionProblem, other: AttentionProblem) -> float:
    return math.dist(place_of(OURS, one), place_of(OURS, other)) / STEPS


def test_of_few_queries_heads_that_share_keys_are_rows_and_those_of_keys_are_blocks() -> None:
    assert octaves(ONE, replace(ONE, heads_kv=4)) == math.sqrt(2)
    assert octaves(ONE, replace(ONE, batch=8, heads_q=16, heads_kv=4)) == 0
    assert octaves(PLAIN, replace(PLAIN, heads_kv=8)) == 0


def test_keys_and_queries_are_told_apart_by_octaves() -> None:
    assert octaves(ONE, replace(ONE, seq_kv=4096)) == 1 and octaves(PLAIN, replace(PLAIN, seq_q=1024)) == 2


def test_what_scores_cost_beside_lies_apart_and_each_in_a_direction_of_its_own() -> None:
    bools, floats = replace(PLAIN, mask="bool"), replace(PLAIN, mask="float")
    assert octaves(PLAIN, bools) == octaves(PLAIN, replace(PLAIN, softcap=30.0)) == APART
    assert octaves(bools, floats) == math.hypot(APART, APART)


def test_on_a_cpu_keys_alone_count_and_dtypes_are_kinds() -> None:
    small = AttentionProblem(1, 2, 2, 64, 512, 64, dtype="float32", device="cpu")
    assert place_of(ON_HOST, small) == place_of(ON_HOST, replace(small, heads_q=4, heads_kv=4, seq_q=128))
    assert kind_of(ON_HOST, small) != kind_of(ON_HOST, replace(small, dtype="bfloat16"))
