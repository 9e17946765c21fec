"""Which calls of flash_attn_func on a GPU are kept once they were judged, and the next ones like them."""

from typing import Any

import torch

from attention.call import Manner, Options
from attention.judge.arguments import OPEN
from attention.kernels.common.layout import Where
from attention.kernels.torch.common.readable import all_readable
from attention.op.known import Known, Serve, keepable, with_gradient
from attention.op.plan import Plan

KNOWN = Known()
_is_tracing = torch.compiler.is_dynamo_compiling


def served(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int | None, int | None] | None = OPEN,
    softcap: float | None = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    strict: bool = False,
    only: str | None = None,
    **others: Any,
) -> torch.Tensor | None:
    """Out of a call that asks for nothing else, and of whose kind one was kept; else None."""
    if _is_tracing() or not KNOWN.calls or others or alibi_slopes is not None or return_attn_probs is not False:
        return None
    options = (dropout_p, softmax_scale, causal, window_size, softcap, deterministic, strict, only)
    return KNOWN.served(q, k, v, options)


def keep(
    plan: Plan,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    given: tuple[Any, ...],
    options: Options,
    manner: Manner,
) -> None:
    """A call without tensors of features that this plan served. `given`: the options as the caller wrote them."""
    trains = with_gradient(q, k, v)
    if not keepable(q, k, v, given) or (manner.strict and trains):
        return
    if plan.owner == "torch":
        if not trains and all(mine is read for mine, read in zip((q, k, v), all_readable(q, k, v), strict=True)):
            KNOWN.keep(q, k, v, given, _by_torch(plan))
        return
    if plan.settles:  # not ours for good: its plan counts the calls
        return
    from attention.op.launched import launched, server_of  # launchers, where something is launched

    ready = launched(plan, q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), turned=True)
    if ready is not None:
        KNOWN.keep(q, k, v, given, server_of(ready, options, manner, trains))


def _by_torch(plan: Plan) -> Serve:
    """The kernel of torch's that the plan names, and may change after some calls: called past the operator."""

    def serve(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, where: Where) -> torch.Tensor | None:
        out, _ = plan.run(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), plan.problem, plan.config)
        return out.transpose(1, 2)

    return serve
