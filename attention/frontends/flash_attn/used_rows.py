"""Sequences of which only some rows are used, as packed sequences of the same tensors: nothing is copied or read back.

This is for what reads no ranges (features/ranges.py): torch's kernels, the CPU's, gradients, whose fused kernels take
packed sequences alone, and compiled graphs, in which nobody knows yet who will serve.

FlashAttention-3's seqused_q, seqused_k and leftpad_k say how much of its slot each sequence uses: its first seqused_q
queries, and its keys from leftpad_k to seqused_k, counted from the slot's begin. Each slot becomes up to four
sequences, one after another:

    queries   none           used   unused   none
    keys      left padding   used   none     unused

No sequence without queries computes anything, and a query without keys gives 0. So whatever serves packed sequences
serves these too, and aligns causality and windows by the used lengths alone.
"""

import torch

from attention.call import Extras, Options
from attention.errors import ProblemError
from attention.features import OPERANDS
from attention.frontends.flash_attn.arguments import FlashExtras
from attention.frontends.flash_attn.judge import wants_gradients
from attention.op.eager import needs_no_dispatch


def starts_of_batch(q: torch.Tensor, k: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The slots of q (B, Sq, Hq, D) and k (B, Skv, Hkv, D) once batch and sequence are one dimension."""
    first = torch.arange(q.shape[0] + 1, dtype=torch.int32, device=q.device)
    return first * q.shape[1], first * k.shape[1]


def split(extras: FlashExtras) -> Extras:
    """Packed sequences that compute what the slots use: `extras.parts()` for each slot, in order.

    Operands of features that have a batch, such as ALiBi slopes (B, Hq), are repeated for each part.
    """
    slots, parts = extras.operands, extras.parts()
    begin_q, end_q = slots.cu_seqlens_q[:-1], slots.cu_seqlens_q[1:]
    begin_k, end_k = slots.cu_seqlens_k[:-1], slots.cu_seqlens_k[1:]
    after_q = end_q if extras.seqused_q is None else begin_q + extras.seqused_q.to(torch.int32)
    after_k = end_k if extras.seqused_k is None else begin_k + extras.seqused_k.to(torch.int32)
    first_k = begin_k
    if extras.leftpad_k is not None:  # padding may reach beyond the used keys: then there are none
        first_k = torch.minimum(begin_k + extras.leftpad_k.to(torch.int32), after_k)
    starts = [(begin_q, begin_k)] if extras.leftpad_k is not None else []
    starts += [(begin_q, first_k)]
    starts += [(after_q, after_k)] if extras.seqused_q is not None else []
    starts += [(end_q, after_k)] if extras.seqused_k is not None else []
    starts_q, starts_k = (torch.stack(side, 1).flatten() for side in zip(*starts, strict=True))
    found = [
        tensor.repeat_interleave(parts, 0)
        if tensor is not None and operand.axes[0] == "b" and tensor.dim() == len(operand.axes)
        else tensor
        for operand, tensor in zip(OPERANDS, slots, strict=False)
    ]
    return Extras(
        *found,
        torch.cat([starts_q, slots.cu_seqlens_q[-1:]]),
        torch.cat([starts_k, slots.cu_seqlens_k[-1:]]),
    )


def unused_queries(starts: torch.Tensor, extras: FlashExtras, tokens: int) -> torch.Tensor:
    """(tokens,) bool: the rows of q that lie in a slot, and past its seqused_q. `starts` are those of parts."""
    rows = torch.arange(tokens, dtype=torch.int32, device=starts.device)
    place = torch.searchsorted(starts, rows, right=True, out_int32=True) - 1
    return place % extras.parts() == (1 if extras.leftpad_k is None else 2)


def with_room(options: Options, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Options:
    """With longest lengths that hold for what is not used as well, where somebody goes by them.

    The caller's hold for what is used. Fused backward kernels write the gradients of no more rows than that, and on
    the CPU the operator checks every sequence; a forward on a GPU leaves rows out that nobody reads.
    """
    if q.device.type == "cuda" and not wants_gradients(q, k, v) and not torch.compiler.is_compiling():
        return options
    return options._replace(max_seqlen_q=q.shape[0], max_seqlen_k=k.shape[0])


def check_on_the_cpu(options: Options, extras: FlashExtras) -> None:
    """Raise ProblemError for numbers outside of their slots, or above the longest length.

    On a GPU that would wait, and is the caller's word. Under a mode or a transform, as while a graph is traced, there
    may be no numbers yet: the operator sees them later.
    """
    slots = extras.operands
    for name, used, starts, longest in (
        ("seqused_q", extras.seqused_q, slots.cu_seqlens_q, options.max_seqlen_q),
        ("seqused_k", extras.seqused_k, slots.cu_seqlens_k, options.max_seqlen_k),
        ("leftpad_k", extras.leftpad_k, slots.cu_seqlens_k, None),
    ):
        if starts.device.type != "cpu" or not needs_no_dispatch(used, starts):
            continue
        room = starts.diff()
        if used is not None and ((used < 0) | (used > room)).any():
            raise ProblemError(
                f"{name} is {used.tolist()}; each must be from 0 to the length of its sequence, {room.tolist()}."
            )
        most = max((room if used is None else used).tolist(), default=0)
        if longest is not None and most > longest:
            raise ProblemError(
                f"max_{name.replace('used', 'len')} is {longest}, and one sequence uses {most} rows; give the most."
            )
