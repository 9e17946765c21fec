"""What a GPU needs at the least for an attention call: documented rates, and data that a cold cache must read."""

import pytest

from attention.compare.bound import bound_seconds
from attention.problem import AttentionProblem
from microbench.machine.arch import Machine, by_name

H200 = Machine("h200", "H200", by_name("sm90a"), 132, 1.98e9, 4.8e12, 141 << 30, 60 << 20)
PEAK = 4096 * 132 * 1.98e9


def problem(**changes: object) -> AttentionProblem:
    sizes = {"batch": 1, "heads_q": 16, "heads_kv": 16, "seq_q": 8192, "seq_kv": 8192, "head_dim": 128}
    return AttentionProblem(**{**sizes, "dtype": "bfloat16", "device": "cuda", **changes})  # type: ignore[arg-type]


def test_products_at_the_rated_clock() -> None:
    assert bound_seconds(H200, problem()) == pytest.approx(4 * 16 * 8192**2 * 128 / PEAK)


def test_causality_counts_the_scores_that_are_seen() -> None:
    seen = 8192 * 8193 / 2
    assert bound_seconds(H200, problem(causal=True)) == pytest.approx(4 * 16 * seen * 128 / PEAK)


def test_a_backward_has_five_products_for_the_forwards_two() -> None:
    forward, backward, both = (
        bound_seconds(H200, problem(), each) for each in ("forward", "backward", "forward and backward")
    )
    assert backward == pytest.approx(2.5 * forward) and both == pytest.approx(3.5 * forward)


def test_one_query_waits_for_the_cache_to_be_read() -> None:
    bytes_read = 2 * 16 * (128 + 131072 * 256)
    assert bound_seconds(H200, problem(seq_q=1, seq_kv=131072)) == pytest.approx(bytes_read / 4.8e12)


def test_nothing_is_known_without_a_clock() -> None:
    assert bound_seconds(Machine("?", "?", by_name("sm90a"), 132, None, None, 1, None), problem()) is None
