"""What is wrong with a call of a flash function: said before a kernel runs, looked at once for each kind of call."""

from functools import lru_cache

import torch

from attention.errors import UnsupportedError
from attention.flash_arguments import FlashExtras, Lengths, Options
from attention.flash_problem import packed_problem, problem, refuse_dropout
from attention.operator import SERVED_DEVICES
from attention.shapes import Described

Facts = tuple[torch.Size, torch.dtype, torch.device]


def judge(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    options: Options,
    extras: FlashExtras,
    lengths: Lengths | None,
) -> None:
    """Raise what is wrong. In a graph shapes may be symbols, and the operator judges them when it runs."""
    if torch.compiler.is_compiling():
        refuse_dropout(options.dropout_p)
        return
    tensors = (q, k, v, *extras, *(() if lengths is None else lengths[:2]))
    facts = tuple(None if each is None else (each.shape, each.dtype, each.device) for each in tensors)
    _judge_once(facts, options, () if lengths is None else lengths[2:])


@lru_cache(maxsize=4096)
def _judge_once(facts: tuple[Facts | None, ...], options: Options, longest: tuple[int, ...]) -> None:
    q, k, v, *others = (None if each is None else Described(*each) for each in facts)
    if q is not None and q.device.type not in SERVED_DEVICES:
        raise UnsupportedError(f"No kernel runs on {q.device.type} yet; move q, k and v to the CPU or to a CUDA GPU.")
    beside = len(FlashExtras._fields)
    extras = FlashExtras(*others[:beside])
    if longest:
        starts_q, starts_k = others[beside:]
        packed_problem(q, k, v, Lengths(starts_q, starts_k, *longest), options, extras)
    else:
        problem(q, k, v, options, extras)
