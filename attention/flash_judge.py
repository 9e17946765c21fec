"""What is wrong with a call of a flash function: said before a kernel runs, looked at once for each kind of call."""

from functools import lru_cache

import torch

from attention.arguments import number
from attention.call import TENSORS, Extras, Options
from attention.errors import UnsupportedError
from attention.flash_arguments import ALL_ROWS, FlashExtras, Lengths
from attention.flash_problem import packed_problem, problem, refuse_dropout
from attention.inputs import symbolic
from attention.served import SERVED_DEVICES
from attention.shapes import Described

Facts = tuple[torch.Size, torch.dtype, torch.device]


def judge(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dropout_p: float,
    options: Options,
    extras: FlashExtras,
    lengths: Lengths | None,
) -> None:
    """Raise what is wrong. In a graph shapes may be symbols, and the operator judges them when it runs."""
    if dropout_p != 0.0:
        refuse_dropout(number("dropout_p", dropout_p))
    if torch.compiler.is_compiling():
        return
    beside = None
    if extras is not ALL_ROWS:
        tensors = (*extras.operands, *extras[1:])
        beside = tuple([None if each is None else _facts(each) for each in tensors])
    try:
        if lengths is None:
            _judge_once(_facts(q), _facts(k), _facts(v), beside, options)
        else:
            starts = (_facts(lengths.cu_seqlens_q), _facts(lengths.cu_seqlens_k))
            _judge_once(_facts(q), _facts(k), _facts(v), beside, options, *starts, *lengths[2:])
    except TypeError:
        if not any(symbolic(each.shape) for each in (q, k, v)):
            raise  # else make_fx and its kin: a symbol has no hash to look up by


def _facts(tensor: torch.Tensor) -> Facts:
    return tensor.shape, tensor.dtype, tensor.device


@lru_cache(maxsize=4096)
def _judge_once(
    q: Facts,
    k: Facts,
    v: Facts,
    beside: tuple[Facts | None, ...] | None,
    options: Options,
    starts_q: Facts | None = None,
    starts_k: Facts | None = None,
    max_seqlen_q: int = 0,
    max_seqlen_k: int = 0,
) -> None:
    if q[2].type not in SERVED_DEVICES:
        raise UnsupportedError(f"No kernel runs on {q[2].type} yet; move q, k and v to the CPU or to a CUDA GPU.")
    tensors = (Described(*q), Described(*k), Described(*v))
    others = [None if each is None else Described(*each) for each in beside or ()]
    extras = FlashExtras(Extras(*others[: len(TENSORS)]), *others[len(TENSORS) :])
    if starts_q is None or starts_k is None:
        problem(*tensors, options, extras)
        return
    lengths = Lengths(Described(*starts_q), Described(*starts_k), max_seqlen_q, max_seqlen_k)
    packed_problem(*tensors, lengths, options, extras)
