"""Who serves a known call by a kernel of ours: one launch, and where gradients are wanted a node of autograd's."""

from dataclasses import dataclass, replace
from typing import Any

import torch

from attention.call import NO_EXTRAS, Manner, Options
from attention.features import OPERANDS
from attention.kernels.common.layout import Where
from attention.kernels.launch.forms import HEADS_FIRST, Form
from attention.kernels.launch.launcher import Launcher
from attention.kernels.launch.machine import machine_of, stand_ins
from attention.kernels.launch.ready import Ready
from attention.kernels.launch.repeated import again
from attention.op.known import Given, Serve
from attention.op.operands import Operands
from attention.op.plan import Plan
from attention.torch_private import apply_of, saves_through_hooks

Triple = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
NO_OPERAND = [False] * len(OPERANDS)


def launched(
    plan: Plan, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, form: Form = HEADS_FIRST
) -> Ready | None:
    """The launch of a call by its tensors in the caller's hands.

    None where no kernel of ours is picked, or where it reads copies.
    """
    if not isinstance(plan.run, Launcher) or plan.fallback is not None:
        return None
    view = form.to_kernel
    ready = plan.run.ready(view(query), view(key), view(value), plan.problem, plan.config)
    return ready if ready is None or form is HEADS_FIRST else ready.held_as(form)


def server_of(
    ready: Ready, options: Options, manner: Manner, with_gradient: bool = False, with_lse: bool = False
) -> Serve:
    """Who serves a call that brings no tensors of features. With a gradient it gets out alone."""
    if with_gradient:
        return Trained(ready, (*options, *manner))
    alone = None if with_lse else again(ready)
    return Launched(ready, with_lse=with_lse) if alone is None else alone


def bringing(
    ready: Ready,
    operands: Operands,
    query: torch.Tensor,
    key: torch.Tensor,
    given: Given,
    with_lse: bool = False,
) -> Serve:
    """Who serves calls without gradients that bring tensors of features like these.

    Which of them a kernel reads where the caller has them follows from the kind of call.
    """
    operands = replace(operands, bring=ready.kernel.bring)
    extras = operands.read(query, key, given)
    lie = zip(operands.names, given, strict=True)
    copied = tuple(at for at, (name, each) in enumerate(lie) if getattr(extras, name).data_ptr() != each.data_ptr())
    bound = ready.bound_to(extras, operands.names)
    alone = None if with_lse or copied else again(bound)
    return Launched(bound, replace(operands, copied=copied) if copied else None, with_lse) if alone is None else alone


@dataclass(frozen=True, eq=False)
class Launched:
    """Out of a call without gradients, or (out, lse). `operands`: of a call some of whose tensors are copied first."""

    ready: Ready
    operands: Operands | None = None
    with_lse: bool = False

    def __call__(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, where: Where, given: Given) -> Any:
        if stand_ins and machine_of(query.device) is not self.ready.machine:
            return None
        if self.operands is not None:
            given = self.operands.copies(query, key, given)
        if self.with_lse:
            return self.ready(query, key, value, where, given or NO_EXTRAS)
        return self.ready(query, key, value, where, given or NO_EXTRAS, False)[0]


@dataclass(frozen=True, eq=False)
class Trained:
    """Out of a call with gradients. `plain`: what the operators take behind the tensors."""

    ready: Ready
    plain: tuple[Any, ...]

    def __call__(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, where: Where, given: Given
    ) -> torch.Tensor | None:
        if stand_ins and machine_of(query.device) is not self.ready.machine:
            return None
        form = self.ready.form
        if form is not HEADS_FIRST and saves_through_hooks():  # the operator saves (B, H, S, D), and may serve a replay
            return None
        out: torch.Tensor = _apply(query, key, value, where, self)
        return out

    def gradients(self, grad_out: torch.Tensor, saved: tuple[torch.Tensor, ...]) -> Triple:
        """As the operators give them, of tensors as the caller has them."""
        from attention.op import operators as operator  # noqa: F401  which registers them with torch, in 17 ms

        form, lse = self.ready.form, saved[4]
        grad_out, query, key, value, out = map(form.to_kernel, (grad_out, *saved[:4]))
        ours = torch.ops.smscope
        if torch.is_grad_enabled():  # create_graph: the gradients depend on the inputs by way of out and lse as well
            out, lse = ours.attention_forward(query, key, value, *NO_EXTRAS, *self.plain)
        inputs = (query, key, value, out, lse, NO_OPERAND, *NO_EXTRAS, *self.plain)
        d_query, d_key, d_value, *_ = ours.attention_backward(grad_out, None, *inputs)
        return form.out(d_query), form.out(d_key), form.out(d_value)


class _Node(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, where: Where, call: Trained
    ) -> torch.Tensor:
        out, lse = call.ready(query, key, value, where)
        ctx.save_for_backward(query, key, value, out, lse)
        ctx.call = call
        return out

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return (*ctx.call.gradients(grads[0], ctx.saved_tensors), None, None)


_apply = apply_of(_Node)
