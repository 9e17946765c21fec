"""The torch operators behind every public function, as attention.call describes their arguments.

smscope::attention_forward(query, key, value, ...) -> (out, lse)      chooses at run time: no graph holds a choice
smscope::attention_backward(...) -> one gradient for query, key, value, and each operand of a feature
"""

from typing import Any

import torch
from torch.autograd import forward_ad

from attention.call import BACKWARD, FORWARD, Call, call_of
from attention.errors import UnsupportedError
from attention.features import OPERANDS
from attention.forwarded import Forwarded, Wanted
from attention.judge.call import judged
from attention.judge.shapes import OPERATOR, known
from attention.kernels.common.layout import empty_lse, empty_out
from attention.kernels.torch.composed.slow import nothing_seen
from attention.op import backward, batching, flops, sharding
from attention.op.served import compute, planned
from attention.problem import heads_in_groups

Maybe = torch.Tensor | None
Pair = tuple[torch.Tensor, torch.Tensor]
# Arguments of the backward before those of the forward that are no query, key or value: out, lse, wanted.
SAVED = 5


def _forward(*arguments: Any) -> Pair:
    return compute(call_of(*arguments))


def _forward_fake(*arguments: Any) -> Pair:
    query, key, value, extras, options, _ = call_of(*arguments)
    found = judged(OPERATOR, (query, key, value), extras, options)
    heads_in_groups(found.heads_q, found.heads_kv, holds=known)
    return empty_out(query, value.shape[-1]), empty_lse(query)


def _backward(*arguments: Any) -> tuple[torch.Tensor, ...]:
    grad_out, grad_lse, query, key, value, out, lse, wanted, *rest = arguments
    call = call_of(query, key, value, *rest)
    plan = planned(call)
    given = Forwarded(query, key, value, out, lse, plan.problem, call.extras)
    twice = torch.is_grad_enabled() and query.requires_grad  # create_graph
    wants = Wanted(tuple(wanted), call.manner.deterministic, grad_lse is not None, twice, plan.run is nothing_seen)
    found = backward.gradients(grad_out, grad_lse, given, wants)
    others = (query.new_empty(0) if each is None else each for each in found.operands[: len(OPERANDS)])
    return found.query, found.key, found.value, *others


def _backward_fake(*arguments: Any) -> tuple[torch.Tensor, ...]:
    _, _, query, key, value, _, _, wanted, *rest = arguments
    others = (
        torch.empty_like(tensor) if tensor is not None and want else query.new_empty(0)
        for tensor, want in zip(call_of(query, key, value, *rest).extras, wanted, strict=False)
    )
    return torch.empty_like(query), torch.empty_like(key), torch.empty_like(value), *others


class _Differentiable(torch.autograd.Function):
    """Forward and backward by the operators, below autograd."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Pair:
        out, lse = _below_autograd(*arguments)
        call = call_of(*arguments)
        ctx.plain = (*call.options, *call.manner)
        ctx.save_for_backward(*call[:3], out, lse, *call.extras)
        # Torch's own zeros would be plain tensors beside a subclass's, and those of lse would ask for the slow path.
        ctx.set_materialize_grads(False)
        return out, lse

    @staticmethod
    def backward(ctx: Any, *grads: Maybe) -> tuple[torch.Tensor | None, ...]:
        """One gradient for each argument of the forward; None for what is no tensor, or not wanted."""
        grad_out, grad_lse = grads
        count = len(ctx.needs_input_grad)
        if grad_out is None and grad_lse is None:
            return (None,) * count
        saved = ctx.saved_tensors
        grad_out = torch.zeros_like(saved[3]) if grad_out is None else grad_out
        wanted = list(ctx.needs_input_grad[3 : 3 + len(OPERANDS)])
        inputs = (*saved[:SAVED], wanted, *saved[SAVED:], *ctx.plain)
        found = torch.ops.smscope.attention_backward(grad_out, grad_lse, *inputs)
        others = (grad if want else None for grad, want in zip(found[3:], wanted, strict=True))
        return (*found[:3], *others, *(None,) * (count - 3 - len(OPERANDS)))


def _below_autograd(*arguments: Any) -> Pair:
    with torch._C._AutoDispatchBelowAutograd():
        results: Pair = torch.ops.smscope.attention_forward.default(*arguments)
    return results


def _backward_autograd(*arguments: Any) -> tuple[torch.Tensor, ...]:
    """Under create_graph, the slow path in torch operations, which autograd follows; else the kernel."""
    tensors = (each for each in arguments if isinstance(each, torch.Tensor))
    if torch.is_grad_enabled() and any(each.requires_grad for each in tensors):
        return _backward(*arguments)
    with torch._C._AutoDispatchBelowAutograd():
        found: tuple[torch.Tensor, ...] = torch.ops.smscope.attention_backward.default(*arguments)
    return found


def _autograd(*arguments: Any) -> Pair:
    differentiable = arguments[: 3 + len(OPERANDS)]
    if forward_ad._current_level >= 0:  # what torch.func.jvp opens as well
        _refuse_tangents(*differentiable)
    if torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in differentiable):
        if torch._C._are_functorch_transforms_active():
            raise UnsupportedError(
                "The gradient transforms of torch.func are not supported by attention; call "
                "torch.nn.functional.scaled_dot_product_attention there, or use backward()."
            )
        call = call_of(*arguments)
        if call.manner.strict:
            _require_fused_backward(call)
        results: Pair = _Differentiable.apply(*call.arguments())  # type: ignore[no-untyped-call]
        return results
    return _below_autograd(*arguments)


def _require_fused_backward(call: Call) -> None:
    """Raise UnsupportedError where gradients on a GPU would take the slow path: what strict=True asks."""
    if call.query.device.type != "cuda":
        return
    wants = Wanted(deterministic=call.manner.deterministic)
    found = backward.route(planned(call).problem, call.query.device, wants)
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
    """Define both operators with the least that a call can cost, measured on torch 2.13 with 18 arguments.

    `Library` and not `custom_op`, whose empty call costs twice as much; and a kernel for the Autograd key and not
    `register_autograd`, which rebuilds the schema once for every argument of every differentiated call: 64 us of 75.
    """
    library: Any = torch.library
    ours = library.Library("smscope", "DEF")
    ours.define(FORWARD)
    ours.define(BACKWARD)
    for key in ("CPU", "CUDA"):
        ours.impl("attention_forward", _forward, key)
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
