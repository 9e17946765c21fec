import math
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attention.call import NO_EXTRAS, Options
from attention.errors import ArgumentError, AttentionError, ProblemError
from attention.judge.call import judged
from attention.judge.shapes import SDPA
from attention.problem import FEATURE_WORDS, AttentionProblem, normalise_dtype

SIZE = st.integers(1, 40)


def posed(*tensors, enable_gqa=False):
    tensors = tuple(np.zeros(each, np.float32) if isinstance(each, tuple) else each for each in tensors)
    found = judged(SDPA, tensors, enable_gqa=enable_gqa)
    return found.problem(Options(), NO_EXTRAS, enable_gqa=enable_gqa)


def test_a_shape_on_the_command_line_becomes_a_problem():
    problem = AttentionProblem.parse_shape("2, 8,4,128,256,64", dtype="bf16", causal=True)
    assert (problem.batch, problem.heads_q, problem.heads_kv, problem.seq_q, problem.seq_kv) == (2, 8, 4, 128, 256)
    assert (problem.head_dim, problem.head_dim_v, problem.dtype, problem.causal) == (64, 64, "bfloat16", True)
    assert AttentionProblem.parse_shape("1,1,1,2,2,64,32").head_dim_v == 32


def test_the_default_scale_is_one_over_the_root_of_the_head_dim():
    assert AttentionProblem(1, 1, 1, 1, 1, 64).softmax_scale == 0.125
    assert AttentionProblem(1, 1, 1, 1, 1, 64, scale=0.0).softmax_scale == 0.0


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        ("1,8,8,16,16,0", "head_dim is 0"),
        ("1,8,8,0,16,64", "seq_q is 0"),
        ("1,8,8,16,16,-4", "head_dim is -4"),
        ("1,8,3,16,16,64", "whole number of query heads"),
        ("1,8,8,16,16", "six or seven whole numbers"),
        ("1,8,8,16,16,6.5", "six or seven whole numbers"),
        ("", "six or seven whole numbers"),
        ("1,8,8,16,16,²", "six or seven whole numbers"),
    ],
)
def test_a_shape_that_makes_no_sense_is_refused_in_one_sentence(shape, says):
    with pytest.raises(ProblemError, match=says) as caught:
        AttentionProblem.parse_shape(shape)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("scale", [math.nan, math.inf, -math.inf, 10**400, "wide"])
def test_a_scale_that_is_no_finite_number_is_refused(scale):
    with pytest.raises(ProblemError, match="finite"):
        AttentionProblem(1, 1, 1, 1, 1, 8, scale=scale)


@pytest.mark.parametrize("dropout", [-0.1, 1.5, math.nan])
def test_a_dropout_outside_0_to_1_is_refused(dropout):
    with pytest.raises(ProblemError, match="probability"):
        AttentionProblem(1, 1, 1, 1, 1, 8, dropout_p=dropout)


def test_an_unknown_dtype_is_refused_with_the_list_of_dtypes():
    with pytest.raises(ProblemError, match="bfloat16"):
        normalise_dtype("int8")
    with pytest.raises(ProblemError, match="int64"):
        posed(*[np.zeros((1, 2, 3, 4), np.int64)] * 3)


def test_errors_are_of_our_tree_and_are_value_errors():
    assert issubclass(ProblemError, AttentionError) and issubclass(ProblemError, ValueError)


@pytest.mark.parametrize(
    ("query", "key", "value", "says"),
    [
        ((4,), (4, 4), (4, 4), "query has shape"),
        ((1, 2, 3, 4), (1, 2, 3, 5), (1, 2, 3, 5), "head_dim 4 and key 5"),
        ((1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 5, 4), "same heads and sequence"),
        ((2, 2, 3, 4), (3, 2, 3, 4), (3, 2, 3, 4), "batches of 2, 3, 3"),
        ((2, 2, 2, 3, 4), (3, 2, 3, 4), (3, 2, 3, 4), r"batches of \(2, 2\), 3, 3"),
        ((1, 4, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4), "enable_gqa=True"),
        ((1, 2, 3, 0), (1, 2, 3, 0), (1, 2, 3, 4), "head_dim is 0"),
    ],
)
def test_tensors_that_do_not_fit_are_named(query, key, value, says):
    with pytest.raises(ProblemError, match=says):
        posed(query, key, value)


def test_mixed_dtypes_are_refused():
    query = np.zeros((1, 1, 2, 4), np.float32)
    with pytest.raises(ProblemError, match="cast them to one dtype"):
        posed(query, query, query.astype(np.float16))


def test_leading_dimensions_fold_into_the_batch():
    shape = (2, 3, 4, 5, 8)
    problem = posed(shape, shape, shape)
    assert (problem.batch, problem.heads_q, problem.seq_q) == (6, 4, 5)
    assert posed((5, 8), (6, 8), (6, 8)).heads_q == 1


def test_broadcasting_stretches_heads_unless_they_are_grouped():
    tensors = ((2, 4, 5, 8), (1, 1, 6, 8), (1, 1, 6, 8))
    assert posed(*tensors).heads_kv == 4
    assert posed(*tensors, enable_gqa=True).heads_kv == 1
    with pytest.raises(ProblemError, match="enable_gqa=True"):
        posed((2, 4, 5, 8), (2, 2, 6, 8), (2, 2, 6, 8))


@given(seq_q=SIZE, seq_kv=SIZE, causal=st.booleans())
def test_scores_counts_what_the_triangle_leaves(seq_q, seq_kv, causal):
    seen = np.tri(seq_q, seq_kv) if causal else np.ones((seq_q, seq_kv))
    assert AttentionProblem(2, 3, 1, seq_q, seq_kv, 8, causal=causal).scores == 6 * seen.sum()


@given(
    lengths=st.tuples(SIZE, SIZE),
    causal=st.booleans(),
    alignment=st.sampled_from(["top_left", "bottom_right"]),
    window=st.tuples(st.integers(-1, 45), st.integers(-1, 45)),
)
def test_the_band_is_what_causality_and_window_say_however_they_are_written(lengths, causal, alignment, window):
    seq_q, seq_kv = lengths
    ahead = np.arange(seq_kv) - np.arange(seq_q)[:, None]
    ahead = ahead - (seq_kv - seq_q if alignment == "bottom_right" else 0)
    left, right = window[0], 0 if causal else window[1]
    seen = ((left < 0) | (ahead >= -left)) & ((right < 0) | (ahead <= right))
    problem = AttentionProblem(2, 3, 1, seq_q, seq_kv, 8, causal=causal, alignment=alignment, window=window)
    band = problem.band()
    i, j = np.indices(seen.shape)
    told = (band.left is None or j >= i + band.left) & (band.right is None or j <= i + band.right)
    assert np.array_equal(np.broadcast_to(told, seen.shape), seen) and problem.scores == 6 * seen.sum()
    rows = np.arange(seq_q)
    begin, end = band.keys(rows, rows, seq_kv)
    assert np.array_equal(end - begin, seen.sum(1))
    again = AttentionProblem(
        *(2, 3, 1, seq_q, seq_kv, 8), causal=problem.causal, alignment=problem.alignment, window=problem.window
    )
    assert again == problem and hash(again) == hash(problem)


def test_two_ways_of_saying_the_same_are_one_problem():
    def problem(seq_q=8, seq_kv=8, **features):
        return AttentionProblem(1, 1, 1, seq_q, seq_kv, 8, **features)

    assert problem(window=(-1, 0)) == problem(causal=True)
    assert problem(causal=True, alignment="bottom_right") == problem(causal=True)
    assert problem(window=(7, 7)) == problem(window=(100, 100)) == problem()
    assert problem(1, 9, causal=True, alignment="bottom_right") == problem(1, 9)
    assert problem(2, 9, causal=True, alignment="bottom_right") != problem(2, 9, causal=True)
    packed = problem(causal=True, alignment="bottom_right", varlen=True)
    assert packed.alignment == "bottom_right" and (packed.tokens_q, packed.tokens_kv) == (8, 8)


def test_features_are_named_in_one_order():
    band = {"causal": True, "alignment": "bottom_right", "window": (3, -1), "varlen": True}
    features = {"softcap": 5.0, "alibi": True, "sinks": True, "mask": "bool", "dropout_p": 0.5}
    everything = AttentionProblem(2, 2, 2, 8, 9, 8, **band, **features)
    assert len(everything.features) == 8
    assert everything.features == tuple(each for each in FEATURE_WORDS if each in everything.features)
    assert all(word in str(everything) for word in ("bottom-right", "window=3,-1", "softcap=5", "alibi", "sinks"))
    assert AttentionProblem(1, 1, 1, 8, 8, 8, causal=True).features == ()


@pytest.mark.parametrize("window", [(-2, 0), (1,), 5, (0.5, 1), None])
def test_a_window_that_is_no_pair_of_whole_numbers_is_refused(window):
    with pytest.raises(ProblemError, match="two whole numbers"):
        AttentionProblem(1, 1, 1, 8, 8, 8, window=window)


def test_a_problem_means_the_same_in_another_process():
    problem = AttentionProblem(1, 1, 1, 8, 8, 8, softcap=2.0)
    hash(problem)
    assert pickle.loads(pickle.dumps(problem)) == problem
    assert "_hash" not in pickle.loads(pickle.dumps(problem)).__dict__


def test_packed_sequences_cost_what_their_mean_length_does():
    packed = AttentionProblem(4, 2, 2, 100, 100, 8, varlen=True, tokens_q=80, tokens_kv=120, causal=True)
    assert packed.mean_lengths == (20, 30) and packed.scores == 8 * np.tri(20, 30).sum()


def test_flops_follow_the_convention_of_the_field():
    assert AttentionProblem(2, 3, 3, 10, 20, 64).flops == 4 * 2 * 3 * 10 * 20 * 64
    assert AttentionProblem(2, 3, 3, 10, 20, 64, causal=True).flops == 2 * 2 * 3 * 10 * 20 * 64
    windowed = AttentionProblem(2, 3, 3, 10, 20, 64, window=(2, 0))
    assert windowed.flops == 4 * 64 * windowed.scores == 4 * 64 * 6 * (1 + 2 + 8 * 3)


def test_a_problem_is_explained_on_the_device_of_the_profile():
    from attention.choose.explain.explain import explain_on
    from tests.cpu.attention_profiles import hopper_profile, host_profile

    asked = AttentionProblem(1, 8, 8, 512, 512, 64)
    assert explain_on(hopper_profile(), asked).choice.problem.device == "cuda"
    assert explain_on(host_profile(), asked.on("cuda")).choice.problem.device == "cpu"


@pytest.mark.parametrize("name", ["batch", "heads_q", "seq_q", "seq_kv", "head_dim", "tokens_q"])
def test_a_size_beyond_what_kernels_count_to_is_refused(name):
    sizes = {"batch": 1, "heads_q": 1, "heads_kv": 1, "seq_q": 1, "seq_kv": 1, "head_dim": 8, name: 10**11}
    with pytest.raises(ProblemError, match=rf"{name} is 100000000000; no size .* is above 2\*\*31 - 1"):
        AttentionProblem(**sizes, varlen=name == "tokens_q")


def test_a_dtype_that_is_no_word_is_refused_with_the_word():
    with pytest.raises(ArgumentError, match=r"dtype is torch.float16, a dtype; give a word, such as 'float16'"):
        AttentionProblem(1, 1, 1, 1, 1, 8, dtype=torch.float16)
