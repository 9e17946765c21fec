"""What the forward operator computes: the plan for a call, the tensors of its features, and the kernel."""

from itertools import pairwise

import torch

from attention.call import NO_EXTRAS, Call, Extras
from attention.errors import ProblemError, UnsupportedError
from attention.features import OPERANDS
from attention.judge.shapes import OPERATOR, facts_of
from attention.op.plan import Plan, plan_of, warn_once


def planned(call: Call) -> Plan:
    query, key, value, extras, options, manner = call
    given = () if extras is NO_EXTRAS else tuple([None if each is None else facts_of(each) for each in extras])
    return plan_of(OPERATOR, facts_of(query), facts_of(key), facts_of(value), given, options, manner.only)


def compute(call: Call, plan: Plan | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """(out, lse). `plan`: of a call that its frontend has judged."""
    query, key, value, extras, options, manner = call
    if plan is None:
        plan = planned(call)
    if plan.fallback is not None and plan.lacks is not None:
        if manner.strict:
            raise UnsupportedError(f"{plan.lacks}; strict=False lets torch serve it.")
        warn_once(plan.lacks)
    if extras is not NO_EXTRAS:
        if extras.cu_seqlens_q is not None and extras.cu_seqlens_k is not None and query.device.type == "cpu":
            _check_lengths("q", extras.cu_seqlens_q, query.shape[2], options.max_seqlen_q)
            _check_lengths("k", extras.cu_seqlens_k, key.shape[2], options.max_seqlen_k)
        extras = expanded(extras, query, key)
    return plan.run(query, key, value, plan.problem, plan.config, extras)


def expanded(extras: Extras, query: torch.Tensor, key: torch.Tensor) -> Extras:
    """As kernels read them, with every axis: of all sequences, or of the one plane where packed ones lie."""
    starts = extras.cu_seqlens_q
    batch = query.shape[0] if starts is None else starts.shape[0] - 1
    found: list[torch.Tensor | None] = []
    for operand, tensor in zip(OPERANDS, extras, strict=False):
        if tensor is None:
            found.append(None)
            continue
        of_scores = "q" in operand.axes or "k" in operand.axes
        sizes = {"b": query.shape[0] if of_scores else batch, "h": query.shape[1], "q": query.shape[2]}
        tensor = tensor.expand([sizes.get(axis, key.shape[2]) for axis in operand.axes])
        found.append(tensor if operand.strides else tensor.contiguous())
    return Extras(*found, *(None if each is None else each.contiguous() for each in extras[len(OPERANDS) :]))


def _check_lengths(name: str, starts: torch.Tensor, tokens: int, longest: int) -> None:
    """Raise ProblemError where sequences run backwards, past the packed rows, or past the longest length."""
    rows = starts.tolist()
    lengths = [end - begin for begin, end in pairwise(rows)]
    if rows[0] < 0 or rows[-1] > tokens or min(lengths, default=0) < 0:
        raise ProblemError(f"cu_seqlens_{name} is {rows}; it must rise from 0 to at most the {tokens} rows of {name}.")
    if max(lengths, default=0) > longest:
        raise ProblemError(f"max_seqlen_{name} is {longest}, and one sequence has {max(lengths)}; give the longest.")
