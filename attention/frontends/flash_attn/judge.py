"""What is wrong with a call of a flash function, or which plan serves it: looked at once for each kind of call."""

from functools import lru_cache

import torch

from attention.call import Extras, Options
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
    """The plan of a sound call, where all rows count; raises what is wrong with another one.

    In a graph shapes may be symbols, and the operator judges them when it runs.
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
        _judged(layout, *tensors, options, _facts_of(extras[1:]))
    except TypeError:
        if not any(symbolic(each.shape) for each in (q, k, v)):
            raise
    return None  # make_fx and its kin: a symbol has no hash to look up by


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
