"""Gradients on a CPU by torch's fused backward on our out and lse: bands, masks, sinks and grouped heads."""

from itertools import product

import pytest
import torch

from attention.call import Extras
from attention.forwarded import Forwarded, Wanted
from attention.kernels.torch.composed import gradient, slow
from attention.op import backward
from attention.problem import AttentionProblem
from attention.variant import Config

BANDS = {
    "open": {},
    "causal": {"causal": True},
    "bottom-right": {"causal": True, "alignment": "bottom_right"},
    "window": {"window": (5, 3)},
}
TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5, torch.bfloat16: 5e-2}


def given(band, mask, sinks, dtype, rows=21, keys=33):
    generator = torch.Generator().manual_seed(2)
    q, k, v = (torch.randn(2, heads, n, 16, generator=generator) for heads, n in ((4, rows), (2, keys), (2, keys)))
    seen = torch.rand(2, 1, rows, keys, generator=generator) < 0.7
    seen[1, :, 3] = False  # a query that sees nothing
    masks = {"none": None, "bool": seen, "float": torch.randn(2, 1, rows, keys, generator=generator).to(dtype)}
    problem = AttentionProblem(
        *(2, 4, 2, rows, keys, 16), dtype=str(dtype).removeprefix("torch."), mask=mask, sinks=sinks, **BANDS[band]
    )
    chosen = masks[mask]
    extras = Extras(
        mask=None if chosen is None else chosen.expand(2, 4, rows, keys),
        sinks=torch.randn(4, generator=generator).to(dtype if dtype is torch.float64 else torch.float32)
        if sinks
        else None,
    )
    q, k, v = (each.to(dtype) for each in (q, k, v))
    out, lse = slow.forward(q, k, v, problem, Config(), extras)
    return Forwarded(q, k, v, out, lse, problem, extras), torch.randn(out.shape, generator=generator).to(dtype)


@pytest.mark.parametrize(("band", "mask", "sinks"), list(product(BANDS, ("none", "bool", "float"), (False, True))))
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_they_are_those_of_the_slow_path(band, mask, sinks, dtype, monkeypatch):
    call, d_out = given(band, mask, sinks, dtype)
    inputs = (d_out, None, call.query, call.key, call.value, call.out, call.lse, call.problem, call.extras)
    expected = gradient.backward(*inputs, wanted=Extras(sinks=sinks), nothing_seen=False)
    monkeypatch.setattr(gradient, "backward", lambda *_, **__: pytest.fail("the slow path"))
    found = backward.gradients(d_out, None, call, Wanted(Extras(sinks=sinks)))
    for name in ("query", "key", "value", "sinks"):
        one, other = (getattr(each.operands if name == "sinks" else each, name) for each in (found, expected))
        assert (one is None) == (other is None) == (name == "sinks" and not sinks)
        if one is not None:
            torch.testing.assert_close(one.double(), other.double(), rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.parametrize(
    "changes", [{"softcap": 5.0}, {"alibi": True}, {"scale": -1.0}, {"head_dim_v": 8}, {"varlen": True}], ids=str
)
def test_what_it_has_not_is_the_slow_paths(changes):
    sizes = {"batch": 1, "heads_q": 2, "heads_kv": 2, "seq_q": 8, "seq_kv": 8, "head_dim": 16} | changes
    found = backward.route(AttentionProblem(**sizes), torch.device("cpu"), Wanted())
    assert found.variant == "host/backward/torch_math" and found.lacks


def test_a_mask_that_wants_a_gradient_goes_the_slow_path():
    call, d_out = given("open", "float", False, torch.float32)
    found = backward.gradients(d_out, None, call, Wanted(Extras(mask=True)))
    assert found.operands.mask is not None
