"""What is wrong with a call of a flash function, or which plan serves it: looked at once for each kind of call."""

from functools import lru_cache

import torch

from attention.call import TENSORS, Extras, Options, given_of
from attention.errors import UnsupportedError
from attention.frontends.flash_attn.arguments import ALL_ROWS, FlashExtras, Lengths
from attention.frontends.flash_attn.problem import packed_problem, problem, refuse_dropout
from attention.frontends.inputs import symbolic
from attention.judge.arguments import number
from attention.judge.shapes import Described
from attention.op.plan import Plan, plan_of
from attention.op.served import SERVED_DEVICES

Facts = tuple[torch.Size, torch.dtype, torch.device]


def judge(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dropout_p: float,
    options: Options,
    extras: FlashExtras,
    lengths: Lengths | None,
    only: str,
) -> Plan | None:
    """The plan of a sound call, where all rows count; raises what is wrong with another one.

    In a graph shapes may be symbols, and the operator judges them when it runs.
    """
    if dropout_p != 0.0:
        refuse_dropout(number("dropout_p", dropout_p))
    if torch.compiler.is_compiling():
        return None
    beside = None
    if extras is not ALL_ROWS:
        tensors = (*extras.operands, *extras[1:])
        beside = tuple([None if each is None else _facts(each) for each in tensors])
    try:
        if lengths is None:
            return _judged(_facts(q), _facts(k), _facts(v), beside, options, only)
        starts = (_facts(lengths.cu_seqlens_q), _facts(lengths.cu_seqlens_k))
        return _judged(_facts(q), _facts(k), _facts(v), beside, options, only, *starts, *lengths[2:])
    except TypeError:
        if not any(symbolic(each.shape) for each in (q, k, v)):
            raise
        return None  # make_fx and its kin: a symbol has no hash to look up by


def _facts(tensor: torch.Tensor) -> Facts:
    return tensor.shape, tensor.dtype, tensor.device


@lru_cache(maxsize=4096)
def _judged(
    q: Facts,
    k: Facts,
    v: Facts,
    beside: tuple[Facts | None, ...] | None,
    options: Options,
    only: str,
    starts_q: Facts | None = None,
    starts_k: Facts | None = None,
    max_seqlen_q: int = 0,
    max_seqlen_k: int = 0,
) -> Plan | None:
    if q[2].type not in SERVED_DEVICES:
        raise UnsupportedError(f"No kernel runs on {q[2].type} yet; move q, k and v to the CPU or to a CUDA GPU.")
    tensors = (Described(*q), Described(*k), Described(*v))
    others = [None if each is None else Described(*each) for each in beside or ()]
    extras = FlashExtras(Extras(*others[: len(TENSORS)]), *others[len(TENSORS) :])
    if starts_q is None or starts_k is None:
        problem(*tensors, options, extras)
        shapes, sequences = ((each[0][0], each[0][2], each[0][1], each[0][3]) for each in (q, k, v)), -1
    else:
        lengths = Lengths(Described(*starts_q), Described(*starts_k), max_seqlen_q, max_seqlen_k)
        packed_problem(*tensors, lengths, options, extras)
        shapes, sequences = ((1, each[0][1], each[0][0], each[0][2]) for each in (q, k, v)), starts_q[0][0] - 1
        options = options._replace(max_seqlen_q=max_seqlen_q, max_seqlen_k=max_seqlen_k)
    if extras.parts() > 1 or q[2].type == "meta":
        return None
    given = given_of(extras.operands)
    return plan_of(*map(torch.Size, shapes), q[1], q[2], given, sequences, options, only)
