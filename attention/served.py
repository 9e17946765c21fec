"""What the forward operator computes: the plan for what it is given, judged tensors of features, and the kernel."""

from typing import Any

import torch

from attention.errors import UnsupportedError
from attention.extras import NO_EXTRAS, Extras
from attention.operands import extras_that_fit, lengths_that_fit, one_kind
from attention.plan import Plan, plan_of, warn_once

SERVED_DEVICES = ("cpu", "cuda", "meta")
Maybe = torch.Tensor | None


def planned(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: Maybe,
    alibi: Maybe,
    sinks: Maybe,
    cu_seqlens_q: Maybe,
    *plain: Any,
) -> Plan:
    return plan_of(
        query.shape,
        key.shape,
        value.shape,
        query.dtype,
        query.device,
        None if mask is None else mask.dtype,
        alibi is not None,
        sinks is not None,
        -1 if cu_seqlens_q is None else cu_seqlens_q.shape[0] - 1,
        *plain,
    )


def compute(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: Maybe,
    alibi: Maybe,
    sinks: Maybe,
    cu_seqlens_q: Maybe,
    cu_seqlens_k: Maybe,
    *plain: Any,
    deterministic: bool = False,  # every forward is
) -> tuple[torch.Tensor, torch.Tensor]:
    strict = plain[9]
    one_kind(query, key, value)
    plan = planned(query, key, value, mask, alibi, sinks, cu_seqlens_q, *plain[:9])
    if plan.fallback is not None and plan.lacks is not None:
        if strict:
            raise UnsupportedError(f"{plan.lacks}; strict=False lets torch serve it.")
        warn_once(plan.lacks)
    extras = NO_EXTRAS
    if any(tensor is not None for tensor in (mask, alibi, sinks, cu_seqlens_q, cu_seqlens_k)):
        extras_that_fit(query, key, mask, alibi, sinks, cu_seqlens_q, cu_seqlens_k)
        if cu_seqlens_q is not None and cu_seqlens_k is not None and query.device.type == "cpu":
            lengths_that_fit("q", cu_seqlens_q, query.shape[2], plain[0])
            lengths_that_fit("k", cu_seqlens_k, key.shape[2], plain[1])
        batch, heads = plan.problem.batch, plan.problem.heads_q
        extras = Extras(
            None if mask is None else mask.expand(query.shape[0], heads, query.shape[2], key.shape[2]),
            None if alibi is None else alibi if alibi.dim() == 2 else alibi.expand(batch, heads),
            None if sinks is None else sinks.contiguous(),
            None if cu_seqlens_q is None else cu_seqlens_q.contiguous(),
            None if cu_seqlens_k is None else cu_seqlens_k.contiguous(),
        )
    return plan.run(query, key, value, plan.problem, plan.config, extras)
