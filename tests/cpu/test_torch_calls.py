"""The calls of torch's GPU kernels have the arguments that torch takes: on tensors without memory, no GPU needed."""

import pytest
import torch

from attention.call import NO_EXTRAS, Extras
from attention.forwarded import Forwarded, Wanted
from attention.kernels.torch import cudnn, efficient, flash
from attention.problem import AttentionProblem
from attention.variant import Config

CALLS = [
    *((kernel, (128, 128), {"causal": causal}) for kernel in (flash, cudnn, efficient) for causal in (False, True)),
    (flash, (128, 128), {"window": (16, 0)}),
    (flash, (64, 128), {"causal": True, "alignment": "bottom_right"}),
    (flash, (64, 64), {"alignment": "bottom_right", "varlen": True, "tokens_q": 100, "tokens_kv": 100}),
    (cudnn, (128, 200), {"causal": True}),
]


def empty(*shape, dtype=torch.bfloat16):
    return torch.empty(shape, dtype=dtype, device="meta")


@pytest.mark.parametrize(("kernel", "lengths", "options"), CALLS)
def test_results_have_the_shapes_of_the_inputs(kernel, lengths, options, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    problem = AttentionProblem(2, 8, 2, *lengths, 64, dtype="bfloat16", device="cuda", **options)
    batch, queries, keys = (1, 100, 100) if problem.varlen else (2, *lengths)
    q, k, v = empty(batch, 8, queries, 64), empty(batch, 2, keys, 64), empty(batch, 2, keys, 64)
    starts = empty(3, dtype=torch.int32)
    extras = Extras(cu_seqlens_q=starts, cu_seqlens_k=starts) if problem.varlen else NO_EXTRAS
    out, lse = kernel.forward(q, k, v, problem, Config(), extras)
    assert out.shape == q.shape and out.stride() == q.stride() and lse.shape == q.shape[:-1]
    if kernel is not efficient:
        given = Forwarded(q, k, v, out, lse, problem, extras)
        found = kernel.backward(torch.empty_like(out), None, given, Wanted())
        assert [each.shape for each in (found.query, found.key, found.value)] == [q.shape, k.shape, v.shape]
