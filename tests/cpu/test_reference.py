import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attention.errors import ProblemError
from attention.oracle import reference

SIZE = st.integers(1, 9)


def one_by_one(q, k, v, causal, scale):
    """Attention as the formula is written, one query at a time, in Python floats."""
    out, lse = np.zeros((*q.shape[:-1], v.shape[-1])), np.zeros(q.shape[:-1])
    group = q.shape[0] // k.shape[0]
    for h in range(q.shape[0]):
        for i in range(q.shape[1]):
            keys = range(min(i + 1, k.shape[1]) if causal else k.shape[1])
            scores = [scale * math.fsum(q[h, i] * k[h // group, j]) for j in keys]
            total = math.fsum(math.exp(s) for s in scores)
            lse[h, i] = math.log(total)
            for j, s in zip(keys, scores, strict=True):
                out[h, i] += math.exp(s) / total * v[h // group, j]
    return out, lse


@given(seed=st.integers(0, 2**31), group=st.integers(1, 3), seq_q=SIZE, seq_kv=SIZE, dim=SIZE, causal=st.booleans())
def test_the_oracle_is_the_formula(seed, group, seq_q, seq_kv, dim, causal):
    rng = np.random.default_rng(seed)
    q, k, v = rng.normal(size=(2 * group, seq_q, dim)), *rng.normal(size=(2, 2, seq_kv, dim))
    out, lse = reference.attention(q, k, v, causal=causal, scale=0.7)
    expected_out, expected_lse = one_by_one(q, k, v, causal, 0.7)
    np.testing.assert_allclose(out, expected_out, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(lse, expected_lse, rtol=1e-12, atol=1e-13)


@given(
    seed=st.integers(0, 2**31),
    seq_q=SIZE,
    seq_kv=SIZE,
    bottom_right=st.booleans(),
    window=st.tuples(st.integers(-1, 9), st.integers(-1, 9)),
    softcap=st.sampled_from([0.0, 2.0]),
    alibi=st.booleans(),
    sinks=st.booleans(),
)
def test_the_oracle_is_the_formula_with_every_feature(seed, seq_q, seq_kv, bottom_right, window, softcap, alibi, sinks):
    rng = np.random.default_rng(seed)
    q, k, v = rng.normal(size=(2, seq_q, 3)), *rng.normal(size=(2, 1, seq_kv, 3))
    slopes, logits = rng.uniform(size=2), rng.normal(size=2)
    band = {"alignment": "bottom_right" if bottom_right else "top_left", "window": window}
    added = {"alibi": slopes if alibi else None, "sinks": logits if sinks else None}
    out, lse = reference.attention(q, k, v, **band, **added, softcap=softcap, scale=0.7)
    for h in range(2):
        for i in range(seq_q):
            total, expected = math.exp(logits[h]) if sinks else 0.0, np.zeros(3)
            for j in range(seq_kv):
                ahead = j - i - (seq_kv - seq_q if bottom_right else 0)
                if (0 <= window[0] < -ahead) or (0 <= window[1] < ahead):
                    continue
                s = 0.7 * math.fsum(q[h, i] * k[0, j])
                s = softcap * math.tanh(s / softcap) if softcap else s
                s -= slopes[h] * abs(i + seq_kv - seq_q - j) if alibi else 0.0
                total, expected = total + math.exp(s), expected + math.exp(s) * v[0, j]
            np.testing.assert_allclose(out[h, i], expected / total if total else 0.0, rtol=1e-12, atol=1e-13)
            np.testing.assert_allclose(lse[h, i], math.log(total) if total else -np.inf, rtol=1e-12, atol=1e-13)


def test_the_oracle_of_packed_sequences_is_that_of_each():
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(2, 9, 4)), *rng.normal(size=(2, 2, 7, 4))
    slopes = rng.uniform(size=(2, 2))
    out, lse = reference.packed(q, k, v, [0, 4, 7], [0, 5, 7], alibi=slopes, causal=True, alignment="bottom_right")
    for at, (rows, keys) in enumerate([(slice(0, 4), slice(0, 5)), (slice(4, 7), slice(5, 7))]):
        one = reference.attention(
            q[:, rows], k[:, keys], v[:, keys], alibi=slopes[at], causal=True, alignment="bottom_right"
        )
        np.testing.assert_array_equal(out[:, rows], one[0])
        np.testing.assert_array_equal(lse[:, rows], one[1])
    assert np.all(out[:, 7:] == 0) and np.all(np.isneginf(lse[:, 7:]))


def test_the_oracle_agrees_with_torch_in_float64():
    generator = torch.Generator().manual_seed(1)
    q, k, v = (torch.randn(2, 4, 33, 16, dtype=torch.float64, generator=generator) for _ in range(3))
    out, _ = reference.attention(q.numpy(), k.numpy(), v.numpy(), causal=True)
    theirs = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    np.testing.assert_allclose(out, theirs.numpy(), rtol=0, atol=1e-14)


def test_a_query_that_sees_nothing_gives_zero_and_minus_infinity():
    q, k, v = np.ones((3, 1, 4, 8))
    out, lse = reference.attention(q, k, v, mask=np.array([[True] * 4, [False] * 4, [True] * 4, [False] * 4]))
    assert np.all(out[0, [1, 3]] == 0) and np.all(np.isneginf(lse[0, [1, 3]]))
    assert np.all(out[0, [0, 2]] == 1) and np.all(np.isfinite(lse[0, [0, 2]]))


def test_a_float_mask_is_added_to_the_scores():
    q, k, v = np.random.default_rng(0).normal(size=(3, 1, 4, 8))
    hidden = np.tri(4, dtype=bool)
    added = reference.attention(q, k, v, mask=np.where(hidden, 0.0, -np.inf))
    for one, other in zip(added, reference.attention(q, k, v, causal=True), strict=True):
        np.testing.assert_array_equal(one, other)


def test_heads_that_cannot_be_shared_are_refused():
    with pytest.raises(ProblemError, match="3 query heads"):
        reference.attention(np.ones((3, 2, 4)), np.ones((2, 2, 4)), np.ones((2, 2, 4)))


def test_the_rule_allows_twice_the_low_precision_error_and_one_rounding_unit():
    oracle, low = np.array([1.0, -4.0]), np.array([1.0, -4.01])
    allowed = 2 * 0.01 + 4 * reference.ROUNDING_UNIT["float32"]
    inside, outside = (oracle + np.array([0, share * allowed]) for share in (0.999, 1.001))
    assert reference.compare(inside, oracle, low, "float32").ok
    assert not reference.compare(outside, oracle, low, "float32").ok


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_a_nan_or_infinity_where_the_oracle_has_none_never_passes(wrong):
    oracle = np.array([1.0, 2.0])
    found = reference.compare(np.array([1.0, wrong]), oracle, oracle + 100, "float32")
    assert not found.ok and not found.positions_agree


def test_infinities_at_the_same_places_pass_and_swapped_signs_do_not():
    oracle = np.array([np.inf, -np.inf, np.nan, 1.0])
    assert reference.compare(oracle, oracle, oracle, "float32").ok
    assert not reference.compare(oracle * [-1, -1, 1, 1], oracle, oracle, "float32").ok


def test_results_of_another_shape_are_refused():
    with pytest.raises(ProblemError, match="shape"):
        reference.compare(np.ones(3), np.ones(4), np.ones(4), "float32")
