import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention.errors import AttentionError, ProblemError
from attention.problem import AttentionProblem, normalise_dtype

SIZE = st.integers(1, 40)


def arrays(query, key, value, dtype="float32"):
    return (np.zeros(shape, dtype) for shape in (query, key, value))


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
        ("1,8,8,16,16", "six whole numbers"),
        ("1,8,8,16,16,6.5", "six whole numbers"),
        ("", "six whole numbers"),
        ("1,8,8,16,16,²", "six whole numbers"),
    ],
)
def test_a_shape_that_makes_no_sense_is_refused_in_one_sentence(shape, says):
    with pytest.raises(ProblemError, match=says) as caught:
        AttentionProblem.parse_shape(shape)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("scale", [math.nan, math.inf, -math.inf, "wide"])
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
        AttentionProblem.from_tensors(*arrays((1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4), "int64"))


def test_errors_are_of_our_tree_and_are_value_errors():
    assert issubclass(ProblemError, AttentionError) and issubclass(ProblemError, ValueError)


@pytest.mark.parametrize(
    ("query", "key", "value", "says"),
    [
        ((4,), (4, 4), (4, 4), "query has shape"),
        ((2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4), "dimensions"),
        ((1, 2, 3, 4), (1, 2, 3, 5), (1, 2, 3, 5), "head_dim 4 and key 5"),
        ((1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 5, 4), "same heads and sequence"),
        ((2, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4), "batches differ"),
        ((1, 4, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4), "enable_gqa=True"),
        ((1, 2, 3, 0), (1, 2, 3, 0), (1, 2, 3, 4), "head_dim is 0"),
    ],
)
def test_tensors_that_do_not_fit_are_named(query, key, value, says):
    with pytest.raises(ProblemError, match=says):
        AttentionProblem.from_tensors(*arrays(query, key, value))


def test_mixed_dtypes_are_refused():
    query = np.zeros((1, 1, 2, 4), np.float32)
    with pytest.raises(ProblemError, match="cast them to one dtype"):
        AttentionProblem.from_tensors(query, query, query.astype(np.float16))


def test_leading_dimensions_fold_into_the_batch():
    shape = (2, 3, 4, 5, 8)
    problem = AttentionProblem.from_tensors(*arrays(shape, shape, shape))
    assert (problem.batch, problem.heads_q, problem.seq_q) == (6, 4, 5)
    assert AttentionProblem.from_tensors(*arrays((5, 8), (6, 8), (6, 8))).heads_q == 1


def test_broadcasting_stretches_heads_unless_they_are_grouped():
    tensors = ((2, 4, 5, 8), (1, 1, 6, 8), (1, 1, 6, 8))
    assert AttentionProblem.from_tensors(*arrays(*tensors), broadcast=True).heads_kv == 4
    assert AttentionProblem.from_tensors(*arrays(*tensors), broadcast=True, enable_gqa=True).heads_kv == 1
    with pytest.raises(ProblemError, match="enable_gqa=True"):
        AttentionProblem.from_tensors(*arrays((2, 4, 5, 8), (2, 2, 6, 8), (2, 2, 6, 8)), broadcast=True)


@given(seq_q=SIZE, seq_kv=SIZE, causal=st.booleans())
def test_scores_counts_what_the_triangle_leaves(seq_q, seq_kv, causal):
    seen = np.tri(seq_q, seq_kv) if causal else np.ones((seq_q, seq_kv))
    assert AttentionProblem(2, 3, 1, seq_q, seq_kv, 8, causal=causal).scores == 6 * seen.sum()


def test_flops_follow_the_convention_of_the_field():
    assert AttentionProblem(2, 3, 3, 10, 20, 64).flops == 4 * 2 * 3 * 10 * 20 * 64
    assert AttentionProblem(2, 3, 3, 10, 20, 64, causal=True).flops == 2 * 2 * 3 * 10 * 20 * 64


def test_a_problem_is_explained_on_the_device_of_the_profile():
    from attention.explain import explain_on
    from tests.cpu.attention_profiles import hopper_profile, host_profile

    asked = AttentionProblem(1, 8, 8, 512, 512, 64)
    assert explain_on(hopper_profile(), asked).choice.problem.device == "cuda"
    assert explain_on(host_profile(), asked.on("cuda")).choice.problem.device == "cpu"
