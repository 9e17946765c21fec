"""The torch operators behind every public function.

    smscope::attention_forward(query, key, value, ...) -> (out, lse)      chooses at run time: no graph holds a choice
    smscope::attention_backward(...) -> one gradient for each differentiable input

query (B, Hq, Sq, D), key (B, Hkv, Skv, D), value (B, Hkv, Skv, Dv); packed sequences are (1, Hq, Tq, D) and so on, with
cu_seqlens. mask is 4-D and broadcasts to (B, Hq, Sq, Skv); alibi (H,) or (B, H) and sinks (H,) have the dtype of lse.
"""

from typing import Any

import torch
from torch.autograd import forward_ad

from attention import backward, batching, flops, sharding
from attention.errors import UnsupportedError
from attention.extras import Extras
from attention.forwarded import Forwarded, Wanted
from attention.layout import empty_lse, empty_out
from attention.operands import extras_that_fit, one_kind, shapes_that_fit
from attention.plan import nothing_seen
from attention.served import Maybe, compute, planned

FEATURES = (
    "Tensor? mask, Tensor? alibi, Tensor? sinks, Tensor? cu_seqlens_q, Tensor? cu_seqlens_k, "
    "SymInt max_seqlen_q, SymInt max_seqlen_k, bool causal, bool bottom_right, int window_left, int window_right, "
    "float softcap, float? scale"
)
FORWARD = (
    f"attention_forward(Tensor query, Tensor key, Tensor value, {FEATURES}, str only, bool strict,"
    " bool deterministic=False) -> (Tensor out, Tensor lse)"
)
BACKWARD = (
    "attention_backward(Tensor grad_out, Tensor? grad_lse, Tensor query, Tensor key, Tensor value, Tensor out, "
    f"Tensor lse, {FEATURES}, bool deterministic, bool[] wanted) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)"
)


def _forward_fake(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: Maybe,
    alibi: Maybe,
    sinks: Maybe,
    cu_seqlens_q: Maybe,
    cu_seqlens_k: Maybe,
    *_: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    one_kind(query, key, value)
    shapes_that_fit(query.shape, key.shape, value.shape, cu_seqlens_q is not None)
    extras_that_fit(query, key, mask, alibi, sinks, cu_seqlens_q, cu_seqlens_k)
    return empty_out(query, value.shape[-1]), empty_lse(query)


def _backward(
    grad_out: torch.Tensor,
    grad_lse: Maybe,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    mask: Maybe,
    alibi: Maybe,
    sinks: Maybe,
    cu_seqlens_q: Maybe,
    cu_seqlens_k: Maybe,
    *plain: Any,
) -> tuple[torch.Tensor, ...]:
    deterministic, (of_mask, of_alibi, of_sinks) = plain[8:10]
    plan = planned(query, key, value, mask, alibi, sinks, cu_seqlens_q, *plain[:8], "")
    extras = Extras(mask, alibi, sinks, cu_seqlens_q, cu_seqlens_k)
    given = Forwarded(query, key, value, out, lse, plan.problem, extras)
    twice = torch.is_grad_enabled() and query.requires_grad  # create_graph
    wants = Wanted(of_mask, of_alibi, of_sinks, deterministic, grad_lse is not None, twice, plan.run is nothing_seen)
    found = backward.gradients(grad_out, grad_lse, given, wants)
    others = (query.new_empty(0) if each is None else each for each in (found.mask, found.alibi, found.sinks))
    return found.query, found.key, found.value, *others


def _backward_fake(
    grad_out: torch.Tensor,
    grad_lse: Maybe,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    mask: Maybe,
    alibi: Maybe,
    sinks: Maybe,
    *plain: Any,
) -> tuple[torch.Tensor, ...]:
    others = (
        torch.empty_like(tensor) if tensor is not None and want else query.new_empty(0)
        for tensor, want in zip((mask, alibi, sinks), plain[-1], strict=True)
    )
    return torch.empty_like(query), torch.empty_like(key), torch.empty_like(value), *others


class _Differentiable(torch.autograd.Function):
    """Forward and backward by the operators, below autograd."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[torch.Tensor, torch.Tensor]:
        out, lse = _below_autograd(*inputs)
        ctx.plain = (*inputs[8:16], inputs[18])
        ctx.save_for_backward(*inputs[:3], out, lse, *inputs[3:8])
        # Torch's own zeros would be plain tensors beside a subclass's, and those of lse would ask for the slow path.
        ctx.set_materialize_grads(False)
        return out, lse

    @staticmethod
    def backward(ctx: Any, *grads: Maybe) -> tuple[torch.Tensor | None, ...]:
        """One gradient for each argument of the forward; None for what is no tensor, or not wanted."""
        grad_out, grad_lse = grads
        if grad_out is None and grad_lse is None:
            return (None,) * 19
        saved = ctx.saved_tensors
        grad_out = torch.zeros_like(saved[3]) if grad_out is None else grad_out
        wanted = list(ctx.needs_input_grad[3:6])
        found = torch.ops.smscope.attention_backward(grad_out, grad_lse, *saved, *ctx.plain, wanted)
        others = (grad if want else None for grad, want in zip(found[3:], wanted, strict=True))
        return (*found[:3], *others, *(None,) * 13)


def _below_autograd(*inputs: Any) -> tuple[torch.Tensor, torch.Tensor]:
    with torch._C._AutoDispatchBelowAutograd():
        results: tuple[torch.Tensor, torch.Tensor] = torch.ops.smscope.attention_forward.default(*inputs)
    return results


def _backward_autograd(*inputs: Any) -> tuple[torch.Tensor, ...]:
    """Under create_graph, the slow path in torch operations, which autograd follows; else the kernel."""
    tensors = (each for each in inputs if isinstance(each, torch.Tensor))
    if torch.is_grad_enabled() and any(each.requires_grad for each in tensors):
        return _backward(*inputs)
    with torch._C._AutoDispatchBelowAutograd():
        found: tuple[torch.Tensor, ...] = torch.ops.smscope.attention_backward.default(*inputs)
    return found


def _autograd(*inputs: Any) -> tuple[torch.Tensor, torch.Tensor]:
    inputs = inputs if len(inputs) == 19 else (*inputs, False)
    if forward_ad._current_level >= 0:  # what torch.func.jvp opens as well
        _refuse_tangents(*inputs[:6])
    if torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in inputs[:6]):
        if torch._C._are_functorch_transforms_active():
            raise UnsupportedError(
                "The gradient transforms of torch.func are not supported by attention; call "
                "torch.nn.functional.scaled_dot_product_attention there, or use backward()."
            )
        if inputs[17]:
            _require_fused_backward(*inputs[:7], *inputs[8:17], deterministic=inputs[18])
        results: tuple[torch.Tensor, torch.Tensor] = _Differentiable.apply(*inputs)  # type: ignore[no-untyped-call]
        return results
    return _below_autograd(*inputs)


def _require_fused_backward(query: torch.Tensor, *others: Any, deterministic: bool) -> None:
    """Raise UnsupportedError where gradients on a GPU would take the slow path: what strict=True asks."""
    if query.device.type != "cuda":
        return
    found = backward.route(planned(query, *others).problem, query.device, Wanted(deterministic=deterministic))
    if found.lacks is not None:
        raise UnsupportedError(f"{found.lacks}; strict=False computes these gradients by the slow path.")


def _refuse_tangents(*tensors: Maybe) -> None:
    """Raise UnsupportedError: below autograd nothing would carry them on, and the result would have none."""
    unpack: Any = forward_ad.unpack_dual
    if any(tensor is not None and unpack(tensor).tangent is not None for tensor in tensors):
        raise UnsupportedError(
            "Forward-mode AD is not supported by attention; call torch.nn.functional.scaled_dot_product_attention "
            "under torch.nn.attention.sdpa_kernel(SDPBackend.MATH), or use reverse mode."
        )


def _register() -> Any:
    """Define both operators with the least that a call can cost, measured on torch 2.13 with these 18 arguments.

    `Library` and not `custom_op`, whose empty call costs twice as much; and a kernel for the Autograd key and not
    `register_autograd`, which rebuilds the schema once for every argument of every differentiated call: 64 us of 75.
    """
    library: Any = torch.library
    ours = library.Library("smscope", "DEF")
    ours.define(FORWARD)
    ours.define(BACKWARD)
    for key in ("CPU", "CUDA"):
        ours.impl("attention_forward", compute, key)
        ours.impl("attention_backward", _backward, key)
    library.register_fake("smscope::attention_forward", _forward_fake, lib=ours)
    library.register_fake("smscope::attention_backward", _backward_fake, lib=ours)
    ours.impl("attention_forward", _autograd, "Autograd")
    ours.impl("attention_backward", _backward_autograd, "Autograd")
    library.register_vmap("smscope::attention_forward", batching.forward, lib=ours)
    flops.register()
    sharding.register()
    return ours


LIBRARY = _register()  # the operators live as long as this does
