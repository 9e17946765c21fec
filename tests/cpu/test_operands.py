"""What reaches the operator without the public functions' checks: compiled graphs, and calls of it by name."""

import numpy as np
import pytest
import torch
from torch.autograd import forward_ad

import attention.op.operators  # noqa: F401  its operators are called by name
from attention import (
    ArgumentError,
    AttentionError,
    ProblemError,
    UnsupportedError,
    flash_attn_func,
    flash_attn_varlen_func,
    sdpa,
)
from attention.call import Call, Extras, Manner, Options
from attention.feature import Operand
from attention.oracle import reference
from tests.cpu.gradient_bounds import close

pytestmark = [pytest.mark.usefixtures("host_machine"), pytest.mark.filterwarnings("ignore::attention.FallbackWarning")]
CLOSE = close((1, 2, 5, 8), (1, 2, 5, 8))
Q = torch.ones(2, 4, 6, 8)
PACKED = torch.ones(1, 2, 6, 8)
STARTS = torch.tensor([0, 4, 6], dtype=torch.int32)


def operator(q, k, v, mask=None, alibi=None, sinks=None, starts=(None, None), longest=(4, 4), only=""):
    extras = Extras(mask=mask, alibi=alibi, sinks=sinks, cu_seqlens_q=starts[0], cu_seqlens_k=starts[1])
    call = Call(q, k, v, extras, Options(*longest), Manner(only))
    return torch.ops.smscope.attention_forward(*call.arguments())


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize(
    ("tensors", "extras", "error", "says"),
    [
        ((Q, Q, Q[:, :, :5]), {}, ProblemError, "same heads and sequence length"),
        ((Q, Q, Q[:, :2]), {}, ProblemError, "same heads and sequence length"),
        ((Q, Q[..., :4], Q), {}, ProblemError, "head_dim 8 and key 4"),
        ((Q, Q[:1], Q[:1]), {}, ProblemError, "batches of 2, 1, 1"),
        ((Q[0], Q, Q), {}, ProblemError, r"query has shape \(4, 6, 8\)"),
        ((Q, Q[:, :3], Q[:, :3]), {}, ProblemError, "whole number of query heads"),
        ((Q, Q[:, :0], Q[:, :0]), {}, ProblemError, "whole number of query heads"),
        ((Q, Q.half(), Q), {}, ProblemError, "float32, float16, float32; cast them"),
        ((Q, Q, Q), {"mask": torch.ones(1, 1, 6, 6, dtype=torch.int32)}, ArgumentError, "mask is torch.int32"),
        ((Q, Q, Q), {"mask": torch.ones(1, 1, 6, 5)}, ProblemError, r"broadcast to \(2, 4, 6, 6\)"),
        ((Q, Q, Q), {"mask": torch.ones(6, 6)}, ProblemError, "4 dimensions"),
        ((Q, Q, Q), {"alibi": torch.ones(3)}, ProblemError, r"alibi has shape \(3,\)"),
        ((Q, Q, Q), {"alibi": torch.ones(4).half()}, ArgumentError, "alibi is torch.float16; pass float32"),
        ((Q, Q, Q), {"sinks": torch.ones(2)}, ProblemError, r"sinks has shape \(2,\)"),
        ((PACKED,) * 3, {"starts": (STARTS.long(), STARTS)}, ArgumentError, "pass int32"),
        ((PACKED,) * 3, {"starts": (STARTS, STARTS[:2])}, ProblemError, "2 sequences and cu_seqlens_k 1"),
        ((PACKED,) * 3, {"starts": (STARTS, None)}, ProblemError, "go together"),
        ((PACKED,) * 3, {"starts": (None, STARTS)}, ProblemError, "go together"),
        ((PACKED,) * 3, {"starts": (STARTS[:0], STARTS)}, ProblemError, "cu_seqlens_q has shape"),
        ((Q, Q, Q), {"starts": (STARTS, STARTS)}, ProblemError, "packed sequences have batch 1"),
    ],
)
def test_the_bare_operator_says_what_is_wrong(device, tensors, extras, error, says):
    def moved(given):
        return tuple(map(moved, given)) if isinstance(given, tuple) else None if given is None else given.to(device)

    with pytest.raises(error, match=says):
        operator(*moved(tensors), **{name: moved(given) for name, given in extras.items()})


@pytest.mark.parametrize(
    ("starts", "longest", "says"),
    [
        ((STARTS, STARTS.flip(0)), (4, 4), "must rise"),
        ((STARTS, STARTS + 1), (4, 4), "the 6 rows of k"),
        ((STARTS, STARTS), (3, 4), "max_seqlen_q is 3, and one sequence has 4"),
        ((STARTS, STARTS), (4, -1), "max_seqlen_k is -1"),
    ],
)
def test_lengths_on_the_cpu_are_read_by_the_operator_too(starts, longest, says):
    with pytest.raises(ProblemError, match=says):
        operator(PACKED, PACKED, PACKED, starts=starts, longest=longest)


def test_tensors_on_different_devices_are_named():
    with pytest.raises(ProblemError, match="are on cpu, meta, cpu"):
        operator(Q, Q.to("meta"), Q)
    with pytest.raises(ProblemError, match="sinks is on cpu and query on meta"):
        operator(*[Q.to("meta")] * 3, sinks=torch.ones(4))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("call", "tensors", "says"),
    [
        (sdpa, (Q, Q, Q[:, :, :5]), "same heads and sequence length"),
        (sdpa, (Q, Q.half(), Q), "cast them to one dtype"),
        (sdpa, (Q, Q, Q, torch.ones(6, 6, dtype=torch.int32)), "mask is torch.int32"),
        (flash_attn_func, (Q, Q[:1], Q[:1]), "have batches of"),
    ],
)
def test_a_compiled_graph_refuses_what_eager_refuses(dynamic, call, tensors, says):
    torch.compiler.reset()
    compiled = torch.compile(lambda *given: call(*given), fullgraph=True, backend="aot_eager", dynamic=dynamic)
    # While a graph is traced, torch wraps the error and keeps its sentence.
    with pytest.raises((RuntimeError, AttentionError), match=says):
        compiled(*tensors)


def test_a_compiled_graph_reads_the_lengths_when_it_runs():
    torch.compiler.reset()

    def call(q, starts_q, starts_k):
        return flash_attn_varlen_func(q, q, q, starts_q, starts_k, 4, 4)

    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    q = torch.randn(6, 2, 8)
    torch.testing.assert_close(compiled(q, STARTS, STARTS), call(q, STARTS, STARTS))
    with pytest.raises(ProblemError, match="must rise"):
        compiled(q, STARTS, STARTS.flip(0))
    torch.testing.assert_close(compiled(q, STARTS.long(), STARTS), call(q, STARTS, STARTS))
    with pytest.raises(RuntimeError, match="pass int32"):
        compiled(q, STARTS.float(), STARTS)


@pytest.mark.filterwarnings("ignore:`torch.jit.script`:DeprecationWarning")  # of torch's own make_dual
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("function", [flash_attn_func, lambda q, k, v: sdpa(q, k, v, only="smscope")])
def test_forward_mode_ad_is_refused_and_not_zero(function, grad):
    x, other, tangent = torch.randn(3, 1, 2, 6, 8)
    x.requires_grad_(grad)
    for call in (lambda t: function(t, other, other), lambda t: function(other, other, t)):
        with pytest.raises(NotImplementedError, match="Forward-mode AD is not supported by attention"):
            torch.func.jvp(call, (x,), (tangent,))
        with forward_ad.dual_level():
            with pytest.raises(UnsupportedError, match="Forward-mode AD is not supported by attention"):
                call(forward_ad.make_dual(x, tangent))
            within = call(x)  # without a tangent nothing is lost
        torch.testing.assert_close(within, call(x))


@pytest.mark.parametrize("only", [None, "torch", "smscope"])
@pytest.mark.parametrize("scale", [-0.2, 0.0])
def test_hidden_keys_stay_hidden_under_a_scale_that_is_not_positive(only, scale):
    q, k, v = torch.randn(3, 1, 2, 5, 8)
    oracle, _ = reference.attention(q, k, v, causal=True, scale=scale)
    found = sdpa(q, k, v, is_causal=True, scale=scale, only=only)
    np.testing.assert_allclose(found, oracle, **CLOSE)
    found = flash_attn_func(*(t.transpose(1, 2) for t in (q, k, v)), causal=True, softmax_scale=scale, only=only)
    np.testing.assert_allclose(found.transpose(1, 2), oracle, **CLOSE)
    if only != "smscope":
        mask = torch.ones(5, 5, dtype=torch.bool).tril()
        for given in (mask, torch.zeros(5, 5).masked_fill(~mask, -torch.inf)):
            found = sdpa(q, k, v, given, scale=scale, only=only)
            np.testing.assert_allclose(found, oracle, **CLOSE)


def test_no_sequence_at_all_gives_zero_and_minus_infinity():
    q, k, v, none = torch.randn(10, 2, 8), torch.randn(12, 2, 8), torch.randn(12, 2, 8), STARTS[:1]
    inputs = [t.requires_grad_() for t in (q, k, v, torch.randn(2), torch.rand(2), torch.rand(0, 2))]
    for sinks, slopes in ((None, None), (inputs[3], inputs[4]), (inputs[3], inputs[5])):
        extras = {"sinks": sinks, "alibi_slopes": slopes}
        out, lse = flash_attn_varlen_func(q, k, v, none, none, 6, 7, return_lse=True, **extras)
        assert out.shape == q.shape and out.eq(0).all() and lse.eq(-torch.inf).all()
        wanted = [t for t in (q, k, v, sinks, slopes) if t is not None]
        grads = torch.autograd.grad(out.sum(), wanted)
        assert all(grad.shape == t.shape and grad.eq(0).all() for grad, t in zip(grads, wanted, strict=True))


def test_axes_are_named_in_the_order_of_scores() -> None:
    with pytest.raises(ValueError, match="has the axes 'hb'; name some of 'bhqk', in this order"):
        Operand("slopes", "hb")
