"""What the forward operator computes: the plan for a call, judged tensors of its features, and the kernel."""

import torch

from attention.call import NO_EXTRAS, NONE_GIVEN, Call, given_of
from attention.errors import UnsupportedError
from attention.op.operands import expanded, extras_that_fit, lengths_that_fit, one_kind
from attention.op.plan import Plan, plan_of, warn_once

SERVED_DEVICES = ("cpu", "cuda", "meta")


def planned(call: Call) -> Plan:
    query, extras = call.query, call.extras
    given, sequences = NONE_GIVEN, -1
    if extras is not NO_EXTRAS:
        given = given_of(extras)
        sequences = -1 if extras.cu_seqlens_q is None else extras.cu_seqlens_q.shape[0] - 1
    shapes = (query.shape, call.key.shape, call.value.shape)
    return plan_of(*shapes, query.dtype, query.device, given, sequences, call.options, call.manner.only)


def compute(call: Call, plan: Plan | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """(out, lse). `plan`: of a call that its frontend has judged, the tensors of features included."""
    query, key, value, extras, options, manner = call
    judged = plan is not None
    if plan is None:
        one_kind(query, key, value)
        plan = planned(call)
    if plan.fallback is not None and plan.lacks is not None:
        if manner.strict:
            raise UnsupportedError(f"{plan.lacks}; strict=False lets torch serve it.")
        warn_once(plan.lacks)
    if extras is not NO_EXTRAS:
        if not judged:
            extras_that_fit(query, key, extras)
        if extras.cu_seqlens_q is not None and extras.cu_seqlens_k is not None and query.device.type == "cpu":
            lengths_that_fit("q", extras.cu_seqlens_q, query.shape[2], options.max_seqlen_q)
            lengths_that_fit("k", extras.cu_seqlens_k, key.shape[2], options.max_seqlen_k)
        extras = expanded(extras, query, key)
    return plan.run(query, key, value, plan.problem, plan.config, extras)
