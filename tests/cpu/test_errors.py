"""Every AttentionError is also what torch raises for the same call, so that code which caught torch's still does."""

import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import attention
from attention import (
    ArgumentError,
    AttentionError,
    DtypeError,
    ProblemError,
    RankError,
    UnsupportedError,
    errors,
    explain,
    sdpa,
)

pytestmark = [pytest.mark.usefixtures("host_machine"), pytest.mark.filterwarnings("ignore::attention.FallbackWarning")]

torch_sdpa = torch.nn.functional.scaled_dot_product_attention
Q = torch.randn(1, 2, 8, 4)
TWO, THREE = torch.randn(2, 2, 8, 4), torch.randn(3, 2, 8, 4)
FOUR_HEADS, THREE_HEADS = torch.randn(1, 4, 8, 4), torch.randn(1, 3, 8, 4)
ROW = torch.randn(4)
SEEN = torch.ones(8, 8, dtype=torch.bool)

# What is wrong: the call's arguments, and what torch 2.13 raises for them.
WRONG = {
    "a list for a tensor": (((Q, [[0.0]], Q), {}), TypeError),
    "None for a tensor": (((Q, Q, None), {}), TypeError),
    "an array for a tensor": (((Q, np.zeros((1, 2, 8, 4), np.float32), Q), {}), TypeError),
    "one dimension": (((ROW, ROW, ROW), {}), RuntimeError),
    "one dimension of the query": (((ROW, Q, Q), {}), RuntimeError),
    "batches that differ": (((TWO, THREE, THREE), {}), RuntimeError),
    "heads that differ": (((FOUR_HEADS, Q, Q), {}), RuntimeError),
    "heads that make no groups": (((THREE_HEADS, Q, Q), {"enable_gqa": True}), RuntimeError),
    "head dims that differ": (((Q, Q[..., :3], Q[..., :3]), {}), RuntimeError),
    "dtypes that differ": (((Q, Q.half(), Q), {}), RuntimeError),
    "devices that differ": (((Q, Q.to("meta"), Q.to("meta")), {}), RuntimeError),
    "whole numbers": (((Q.int(), Q.int(), Q.int()), {}), RuntimeError),
    "booleans": (((Q.bool(), Q.bool(), Q.bool()), {}), RuntimeError),
    "complex numbers": (((Q.cfloat(), Q.cfloat(), Q.cfloat()), {}), NotImplementedError),
    "8-bit floats": ((tuple(Q.to(torch.float8_e4m3fn) for _ in range(3)), {}), NotImplementedError),
    "a mask that is a list": (((Q, Q, Q, [[True]]), {}), TypeError),
    "a mask of whole numbers": (((Q, Q, Q, SEEN.int()), {}), RuntimeError),
    "a mask that does not broadcast": (((Q, Q, Q, SEEN[:5]), {}), RuntimeError),
    "a mask of too many dimensions": (((Q, Q, Q, SEEN.expand(1, 1, 1, 1, 8, 8)), {}), RuntimeError),
    "a mask of one dimension": (((Q, Q, Q, SEEN[0]), {}), IndexError),
    "a mask of no dimension": (((Q, Q, Q, SEEN[0, 0]), {}), IndexError),
    "a dropout above 1": (((Q, Q, Q), {"dropout_p": 2.0}), RuntimeError),
    "a dropout below 0": (((Q, Q, Q), {"dropout_p": -1.0}), RuntimeError),
    "a word for the dropout": (((Q, Q, Q), {"dropout_p": "much"}), TypeError),
    "None for the dropout": (((Q, Q, Q), {"dropout_p": None}), TypeError),
    "1 for is_causal": (((Q, Q, Q), {"is_causal": 1}), TypeError),
    "None for is_causal": (((Q, Q, Q), {"is_causal": None}), TypeError),
    "a list for is_causal": (((Q, Q, Q), {"is_causal": []}), TypeError),
    "a NumPy bool for enable_gqa": (((Q, Q, Q), {"enable_gqa": np.bool_(True)}), TypeError),
    "a word for the scale": (((Q, Q, Q), {"scale": "0.5"}), TypeError),
    "a list for the scale": (((Q, Q, Q), {"scale": [0.5]}), TypeError),
    "a scale of one dimension": (((Q, Q, Q), {"scale": torch.ones(1)}), TypeError),
    "a scale with a gradient": (((Q, Q, Q), {"scale": torch.tensor(0.5, requires_grad=True)}), TypeError),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_call_that_torch_refuses_raises_an_error_of_torchs_type_too(wrong):
    (tensors, options), kind = WRONG[wrong]
    with pytest.raises(Exception) as theirs:
        torch_sdpa(*tensors, **options)
    with pytest.raises(AttentionError) as ours:
        sdpa(*tensors, **options)
    assert isinstance(ours.value, kind) and isinstance(ours.value, type(theirs.value))
    assert "\n" not in str(ours.value)


@pytest.mark.parametrize("wrong", [name for name, (given, kind) in WRONG.items() if given[1] and kind is TypeError])
def test_an_explanation_refuses_the_plain_arguments_that_the_call_refuses(wrong):
    (tensors, options), kind = WRONG[wrong]
    with pytest.raises(kind) as ours:
        explain(*tensors, **options)
    assert isinstance(ours.value, AttentionError)


@pytest.mark.parametrize("mask", [SEEN[0], SEEN[0, 0], Q[0, 0, 0, 0]], ids=["keys", "one bool", "one float"])
def test_a_flat_mask_is_served_where_torch_serves_it_and_else_refused_as_explained(mask):
    for call in (sdpa, explain):
        with pytest.raises(RankError, match=r"attn_mask has shape \(.*; pass attn_mask\.expand\(8, 8\)"):
            call(Q, Q, Q, mask)
    half = mask.clone().requires_grad_() if mask.is_floating_point() else mask
    served = [((Q[0], Q[0], Q[0], mask), {}), ((TWO, Q, Q, mask), {}), ((Q[:, :, :0], Q, Q, mask), {})]
    served += [((Q, Q, Q, half), {"dropout_p": 0.0 if half.requires_grad else 1.0})]
    for tensors, options in served:
        torch.testing.assert_close(sdpa(*tensors, **options), torch_sdpa(*tensors, **options))
        assert explain(*tensors, **options).choice.pick.owner == "torch"
    with sdpa_kernel(SDPBackend.MATH):
        torch.testing.assert_close(sdpa(Q, Q, Q, mask), torch_sdpa(Q, Q, Q, mask))
        assert explain(Q, Q, Q, mask).cautions


@pytest.mark.parametrize("only", [None, "smscope"])
def test_a_call_that_torch_refuses_by_its_arguments_names_is_a_type_error(only):
    for tensors, options in (((Q, Q), {}), ((Q, Q, Q), {"causal": True})):
        for function in (torch_sdpa, lambda *given, **named: sdpa(*given, **named, only=only)):
            with pytest.raises(TypeError):
                function(*tensors, **options)


@pytest.mark.parametrize("only", [None, "smscope", "torch_math"])
@pytest.mark.parametrize(
    "options",
    [
        {"dropout_p": 0, "scale": 1},
        {"dropout_p": np.float32(0), "scale": np.float32(0.5)},
        {"dropout_p": torch.tensor(0.0), "scale": torch.tensor(0.5)},
        {"dropout_p": False, "scale": np.int64(2)},
    ],
)
def test_numbers_are_taken_in_every_kind_that_torch_takes(only, options):
    torch.testing.assert_close(sdpa(Q, Q, Q, **options, only=only), torch_sdpa(Q, Q, Q, **options), rtol=0, atol=5e-6)


def test_the_tree_is_what_its_docstring_says():
    assert issubclass(ProblemError, ValueError) and issubclass(ProblemError, RuntimeError)
    assert issubclass(ArgumentError, TypeError) and issubclass(UnsupportedError, NotImplementedError)
    assert issubclass(DtypeError, ProblemError) and issubclass(DtypeError, UnsupportedError)
    assert issubclass(errors.LaunchError, RuntimeError) and issubclass(RankError, IndexError)
    tree = {name for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, AttentionError)}
    assert all(name in (errors.__doc__ or "") for name in tree)
    assert tree - {"LaunchError"} <= set(attention.__all__)
