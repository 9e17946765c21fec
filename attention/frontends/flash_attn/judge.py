"""What is wrong with a call of a flash function, or which plan serves it: looked at once for each kind of call."""

from functools import lru_cache

import torch

from attention.call import NO_EXTRAS, Extras, Options
from attention.errors import UnsupportedError
from attention.frontends.flash_attn.arguments import ALL_ROWS, FlashExtras, refuse_dropout, rows_that_fit
from attention.frontends.inputs import symbolic
from attention.judge.arguments import number
from attention.judge.call import judged
from attention.judge.shapes import Facts, Layout, facts_of
from attention.op.plan import Given, Plan, plan_of

Maybe = Given | None


def judge(
    layout: Layout,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dropout_p: float,
    options: Options,
    extras: FlashExtras,
    only: str,
) -> Plan | None:
    """The plan of a sound call; raises what is wrong with another one.

    None in a graph, where shapes may be symbols and the operator judges them when it runs; and of a call that uses some
    of its rows alone where no kernel reads which (used_rows.split serves it then).
    """
    if dropout_p != 0.0:
        refuse_dropout(number("dropout_p", dropout_p))
    if torch.compiler.is_compiling():
        return None
    try:
        if extras is ALL_ROWS:
            return plan_of(layout, facts_of(q), facts_of(k), facts_of(v), (), options, only)
        tensors = (facts_of(q), facts_of(k), facts_of(v), _facts_of(extras.operands))
        if extras.parts() == 1:
            return plan_of(layout, *tensors, options, only)
        if q.device.type == "cuda" and not wants_gradients(q, k, v, extras.operands):
            return _ranged(layout, *tensors[:3], _facts_of(extras.ranged()), options, only)
        _judged(layout, *tensors, options, _facts_of(extras[1:]))
    except TypeError:
        if not any(symbolic(each.shape) for each in (q, k, v)):
            raise
    return None  # make_fx and its kin: a symbol has no hash to look up by


def wants_gradients(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, operands: Extras = NO_EXTRAS) -> bool:
    """Whether a fused backward is to follow: those take packed sequences, and no ranges of rows."""
    return torch.is_grad_enabled() and any(each is not None and each.requires_grad for each in (q, k, v, *operands))


@lru_cache(maxsize=4096)
def _ranged(
    layout: Layout, q: Given, k: Given, v: Given, beside: tuple[Maybe, ...], options: Options, only: str
) -> Plan | None:
    """The plan by which a kernel of ours reads the ranges; None where none of ours is chosen.

    A call that is not sound is refused as `_judged` refuses it.
    """
    try:
        plan = plan_of(layout, q, k, v, beside, options, only)
    except UnsupportedError:  # which is said of the packed sequences, where it is so of these as well
        return None
    return plan if plan.owner == "smscope" and plan.fallback is None else None


def _facts_of(tensors: tuple[torch.Tensor | None, ...]) -> tuple[Maybe, ...]:
    return tuple([None if each is None else facts_of(each) for each in tensors])


@lru_cache(maxsize=4096)
def _judged(
    layout: Layout, q: Given, k: Given, v: Given, beside: tuple[Maybe, ...], options: Options, rows: tuple[Maybe, ...]
) -> None:
    others = [None if each is None else Facts(*each) for each in (*beside, *rows)]
    extras = FlashExtras(Extras(*others[: len(beside)]), *others[len(beside) :])
    query = Facts(*q)
    found = judged(layout, (query, Facts(*k), Facts(*v)), extras.operands, options)
    rows_that_fit(layout, query, extras, found.batch)
    found.problem(options, extras.operands)
