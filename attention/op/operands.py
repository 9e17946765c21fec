"""Tensors that the operator was called with, judged before any kernel reads them by their addresses.

A compiled graph and the bare operator reach no check of the public functions. While a graph is traced, sizes may be
symbols; what cannot be decided then is decided when the graph runs, by the same functions.
"""

from itertools import pairwise
from typing import Any

import torch

from attention.call import TENSORS, Extras
from attention.errors import ArgumentError, ProblemError
from attention.feature import Operand
from attention.features import OPERANDS
from attention.kernels.common.layout import lse_dtype

Maybe = torch.Tensor | None
Sizes = Any  # torch.Size, whose numbers may be torch.SymInt
NAMES = ("query", "key", "value")


def shapes_that_fit(query: Sizes, key: Sizes, value: Sizes, packed: bool) -> None:
    """Raise ProblemError unless these are (B, Hq, Sq, D), (B, Hkv, Skv, D) and (B, Hkv, Skv, Dv); B is 1 if packed."""
    shapes = (query, key, value)
    for name, shape in zip(NAMES, shapes, strict=True):
        if len(shape) != 4:
            raise ProblemError(
                f"{name} has shape {tuple(shape)}; give it the layout (batch, heads, sequence, head_dim)."
            )
    if _differ(query[0], key[0]) or _differ(query[0], value[0]) or (packed and _differ(query[0], 1)):
        wanted = "packed sequences have batch 1" if packed else "give one size"
        raise ProblemError(f"query, key and value have batches of {query[0]}, {key[0]}, {value[0]}; {wanted}.")
    if _differ(query[3], key[3]):
        raise ProblemError(f"query has head_dim {query[3]} and key {key[3]}; they must be equal.")
    if _differ(key[1], value[1]) or _differ(key[2], value[2]):
        raise ProblemError(f"key {tuple(key)} and value {tuple(value)} must have the same heads and sequence length.")
    if _differ(query[1], key[1]) and (_equal(key[1], 0) or _differ(query[1] % key[1], 0)):
        raise ProblemError(
            f"query has {query[1]} heads and key {key[1]}; each key head must serve a whole number of query heads."
        )


def one_kind(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> None:
    """Raise ProblemError unless all three have one dtype and lie on one device."""
    if not (query.dtype is key.dtype is value.dtype):
        raise ProblemError(f"query, key and value are {_words(query, key, value)}; cast them to one dtype.")
    if not (query.device == key.device == value.device):
        devices = ", ".join(str(tensor.device) for tensor in (query, key, value))
        raise ProblemError(f"query, key and value are on {devices}; move them to one device.")


def extras_that_fit(query: torch.Tensor, key: torch.Tensor, extras: Extras) -> None:
    """Raise ProblemError, or ArgumentError for a dtype, where a tensor of a feature is not as its feature says.

    Lengths that lie on the CPU are read by lengths_that_fit; on a GPU that would wait for the device.
    """
    for name, tensor in zip(TENSORS, extras, strict=True):
        if tensor is not None and tensor.device != query.device:
            raise ProblemError(f"{name} is on {tensor.device} and query on {query.device}; move both to one device.")
    starts_q, starts_k = extras.cu_seqlens_q, extras.cu_seqlens_k
    if (starts_q is None) != (starts_k is None):
        raise ProblemError("cu_seqlens_q and cu_seqlens_k go together; give both, or none.")
    sizes = dict(zip("bhqk", (query.shape[0], query.shape[1], query.shape[2], key.shape[2]), strict=True))
    if starts_q is not None and starts_k is not None:
        sizes["b"] = _sequences(starts_q, starts_k)
    for operand, tensor in zip(OPERANDS, extras, strict=False):
        if tensor is not None:
            _has_its_dtype(operand, tensor, query)
            _has_its_shape(operand, tensor, sizes)


def expanded(extras: Extras, query: torch.Tensor, key: torch.Tensor) -> Extras:
    """As kernels read them, with every axis: of all sequences, or of the one plane where packed ones lie."""
    starts = extras.cu_seqlens_q
    batch = query.shape[0] if starts is None else starts.shape[0] - 1
    found: list[Maybe] = []
    for operand, tensor in zip(OPERANDS, extras, strict=False):
        if tensor is None:
            found.append(None)
            continue
        of_scores = "q" in operand.axes or "k" in operand.axes
        sizes = {"b": query.shape[0] if of_scores else batch, "h": query.shape[1], "q": query.shape[2]}
        tensor = tensor.expand([sizes.get(axis, key.shape[2]) for axis in operand.axes])
        found.append(tensor if operand.strides else tensor.contiguous())
    return Extras(*found, *(None if each is None else each.contiguous() for each in extras[len(OPERANDS) :]))


def lengths_that_fit(name: str, starts: torch.Tensor, tokens: int, longest: int) -> None:
    """Raise ProblemError where sequences run backwards, past the packed rows, or past the longest length."""
    rows = starts.tolist()
    lengths = [end - begin for begin, end in pairwise(rows)]
    if rows[0] < 0 or rows[-1] > tokens or min(lengths, default=0) < 0:
        raise ProblemError(f"cu_seqlens_{name} is {rows}; it must rise from 0 to at most the {tokens} rows of {name}.")
    if max(lengths, default=0) > longest:
        raise ProblemError(f"max_seqlen_{name} is {longest}, and one sequence has {max(lengths)}; give the longest.")


def _sequences(cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor) -> int:
    for name, starts in (("cu_seqlens_q", cu_seqlens_q), ("cu_seqlens_k", cu_seqlens_k)):
        if starts.dim() != 1 or _equal(starts.shape[0], 0):
            raise ProblemError(f"{name} has shape {tuple(starts.shape)}; give it (sequences + 1,), beginning with 0.")
        if starts.dtype is not torch.int32:
            raise ArgumentError(f"{name} is {starts.dtype}; pass int32, such as {name}.to(torch.int32).")
    counts = cu_seqlens_q.shape[0] - 1, cu_seqlens_k.shape[0] - 1
    if _differ(*counts):
        raise ProblemError(
            f"cu_seqlens_q says {counts[0]} sequences and cu_seqlens_k {counts[1]}; "
            "give both one entry more than there are sequences."
        )
    return counts[0]


def _has_its_dtype(operand: Operand, tensor: torch.Tensor, query: torch.Tensor) -> None:
    name, dtype = operand.name, tensor.dtype
    if operand.holds == "mask":
        if dtype is not torch.bool and not dtype.is_floating_point:
            raise ArgumentError(f"{name} is {dtype}; pass a bool mask (True may be seen), or floats, which are added.")
    elif dtype is not lse_dtype(query):
        raise ArgumentError(f"{name} is {dtype}; beside {query.dtype} pass {lse_dtype(query)}.")


def _has_its_shape(operand: Operand, tensor: torch.Tensor, sizes: dict[str, int]) -> None:
    whole, shape = tuple(sizes[axis] for axis in operand.axes), tuple(tensor.shape)
    least = len(whole) - len(operand.leaves)
    fits = least <= len(shape) <= len(whole) and not any(
        _differ(have, want) and (not operand.stretch or _differ(have, 1))
        for have, want in zip(reversed(shape), reversed(whole), strict=False)
    )
    if fits:
        return
    if operand.stretch:
        rank = f"{len(whole)} dimensions"
        raise ProblemError(f"{operand.name} has shape {shape}; it must have {rank} and broadcast to {whole}.")
    allowed = " or ".join(str(whole[skipped:]) for skipped in range(len(operand.leaves), -1, -1))
    raise ProblemError(f"{operand.name} has shape {shape}; give it {allowed}.")


def _differ(one: Any, other: Any) -> bool:
    return _known(one != other)


def _equal(one: Any, other: Any) -> bool:
    return _known(one == other)


def _known(of_sizes: Any) -> bool:
    """True where two sizes are known to satisfy it; False where symbols leave it open until the graph runs."""
    if isinstance(of_sizes, bool):
        return of_sizes
    from torch.fx.experimental.symbolic_shapes import guard_or_false  # half a second that no eager call pays

    return guard_or_false(of_sizes)


def _words(*tensors: torch.Tensor) -> str:
    return ", ".join(str(tensor.dtype).removeprefix("torch.") for tensor in tensors)
