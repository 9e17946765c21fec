"""Who serves a known call by a kernel of ours: one launch, and where gradients are wanted a node of autograd's."""

from dataclasses import dataclass
from typing import Any

import torch

from attention.call import NO_EXTRAS, Manner, Options
from attention.features import OPERANDS
from attention.kernels.common.layout import Where
from attention.kernels.launch.launcher import Launcher
from attention.kernels.launch.machine import machine_of, stand_ins
from attention.kernels.launch.ready import Ready
from attention.op.known import Serve
from attention.op.plan import Plan
from attention.torch_private import apply_of, saves_through_hooks

Triple = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
NO_OPERAND = [False] * len(OPERANDS)


def launched(
    plan: Plan, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *, turned: bool = False
) -> Ready | None:
    """The launch of a call (B, H, S, D); None where no kernel of ours is picked, or where it reads copies.

    `turned`: the caller's tensors are (B, S, H, D), of which these are views.
    """
    if not isinstance(plan.run, Launcher) or plan.fallback is not None:
        return None
    ready = plan.run.ready(query, key, value, plan.problem, plan.config)
    return ready.as_rows_of_heads() if ready is not None and turned else ready


def server_of(ready: Ready, options: Options, manner: Manner, with_gradient: bool) -> Serve:
    return Trained(ready, (*options, *manner)) if with_gradient else Launched(ready)


@dataclass(frozen=True, eq=False)
class Launched:
    """Out of a call without gradients."""

    ready: Ready

    def __call__(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, where: Where
    ) -> torch.Tensor | None:
        if stand_ins and machine_of(query.device) is not self.ready.machine:
            return None
        return self.ready(query, key, value, where, NO_EXTRAS, False)[0]


@dataclass(frozen=True, eq=False)
class Trained:
    """Out of a call with gradients. `plain`: what the operators take behind the tensors."""

    ready: Ready
    plain: tuple[Any, ...]

    def __call__(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, where: Where
    ) -> torch.Tensor | None:
        if stand_ins and machine_of(query.device) is not self.ready.machine:
            return None
        if self.ready.turned and saves_through_hooks():  # the operator saves (B, H, S, D), and may serve the replay
            return None
        out: torch.Tensor = _apply(query, key, value, where, self)
        return out

    def gradients(self, grad_out: torch.Tensor, saved: tuple[torch.Tensor, ...]) -> Triple:
        """As the operators give them, of tensors as the caller has them."""
        from attention.op import operators as operator  # noqa: F401  which registers them with torch, in 17 ms

        query, key, value, out, lse = saved
        if self.ready.turned:
            grad_out, query, key, value, out = (each.transpose(1, 2) for each in (grad_out, query, key, value, out))
        ours = torch.ops.smscope
        if torch.is_grad_enabled():  # create_graph: the gradients depend on the inputs by way of out and lse as well
            out, lse = ours.attention_forward(query, key, value, *NO_EXTRAS, *self.plain)
        inputs = (query, key, value, out, lse, NO_OPERAND, *NO_EXTRAS, *self.plain)
        d_query, d_key, d_value, *_ = ours.attention_backward(grad_out, None, *inputs)
        if self.ready.turned:
            return d_query.transpose(1, 2), d_key.transpose(1, 2), d_value.transpose(1, 2)
        return d_query, d_key, d_value


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
