"""What three tensors' shapes, dtypes and devices say together, or the sentence that names which do not fit.

No torch here: anything with shape and dtype will do.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from attention.errors import ArgumentError, ProblemError

Shape = tuple[int, ...]
MASK_AND_CAUSAL = "attn_mask and is_causal=True exclude each other; put the triangle into the mask."
LARGEST = 2**31 - 1  # kernels index rows, heads and keys in 32 bits
TMA_BYTES = 16  # of which a base and strides are multiples that a GPU kernel of ours reads in place


@dataclass(frozen=True)
class Described:
    shape: Any
    dtype: Any
    device: Any


def same_dtype(*tensors: Any) -> str:
    """The one dtype of query, key and value, as a word. Raises ProblemError."""
    dtypes = [str(tensor.dtype).removeprefix("torch.") for tensor in tensors]
    if len(set(dtypes)) > 1:
        raise ProblemError(f"query, key and value are {', '.join(dtypes)}; cast them to one dtype.")
    return dtypes[0]


def same_device(*tensors: Any) -> str:
    """The one device of query, key and value; an array without one lies on the CPU. Raises ProblemError."""
    devices = [_device(tensor) for tensor in tensors]
    if len(set(devices)) > 1:
        raise ProblemError(f"query, key and value are on {', '.join(devices)}; move them to one device.")
    return devices[0]


def shapes_of(query: Any, key: Any, value: Any) -> list[Shape]:
    """Three shapes as tuples of whole numbers."""
    return [tuple(int(size) for size in tensor.shape) for tensor in (query, key, value)]


def stretched(shapes: list[Shape], keep: int) -> list[Shape]:
    """Stretch everything before the last `keep` dimensions, where that works; what does not is named by checked."""
    first = shapes[0][:-keep]
    if all(shape[:-keep] == first for shape in shapes[1:]):
        return shapes
    try:
        leading = np.broadcast_shapes(*(shape[:-keep] for shape in shapes))
    except ValueError:
        return shapes
    return [(*leading, *shape[-keep:]) for shape in shapes]


def checked(shapes: list[Shape]) -> list[Shape]:
    """The shapes with at least three dimensions, (..., H, S, D). Raises ProblemError with those that do not fit."""
    names = ("query", "key", "value")
    for name, shape in zip(names, shapes, strict=True):
        if len(shape) < 2:
            raise ProblemError(f"{name} has shape {shape}; give it the layout (batch, heads, sequence, head_dim).")
    ranks = [len(shape) for shape in shapes]
    if len(set(ranks)) > 1:
        raise ProblemError(
            f"query, key and value have {ranks[0]}, {ranks[1]} and {ranks[2]} dimensions; give all the same."
        )
    q, k, v = shapes = [(1,) * max(0, 3 - len(shape)) + shape for shape in shapes]
    if len({shape[:-3] for shape in shapes}) > 1:
        raise ProblemError(f"The batches differ: query {q}, key {k}, value {v}; give all the same leading dimensions.")
    if q[-1] != k[-1]:
        raise ProblemError(f"query has head_dim {q[-1]} and key {k[-1]}; they must be equal.")
    if v[-1] < 1:
        raise ProblemError("value has head_dim 0; every size of an attention problem is at least 1.")
    if k[-3:-1] != v[-3:-1]:
        raise ProblemError(f"key {k} and value {v} must have the same heads and sequence length.")
    return shapes


def sizes_in_reach(sizes: dict[str, int]) -> None:
    """Raise ProblemError for a size below 1 (tokens of packed sequences may be 0), or above what kernels count to."""
    if min(sizes.values()) >= 1 and max(sizes.values()) <= LARGEST:
        return
    for name, size in sizes.items():
        if size < 1 and not (size == 0 and name.startswith("tokens")):
            raise ProblemError(f"{name} is {size}; every size of an attention problem is at least 1.")
        if size > LARGEST:
            raise ProblemError(f"{name} is {size}; no size of an attention problem is above 2**31 - 1.")


def heads_in_groups(heads_q: int, heads_kv: int, enable_gqa: bool) -> None:
    """Raise ProblemError unless each key head serves one query head, or with enable_gqa the same number of them."""
    if heads_q == heads_kv:
        return
    if not enable_gqa:
        raise ProblemError(
            f"query has {heads_q} heads and key {heads_kv}; give both the same number, or pass enable_gqa=True."
        )
    if heads_q % heads_kv:
        raise ProblemError(
            f"query has {heads_q} heads and key {heads_kv}; each key head must serve a whole number of query heads."
        )


def mask_that_fits(mask: Any, whole: Shape) -> None:
    """Raise for a mask that does not broadcast to `whole`, (..., Hq, Sq, Skv), or holds neither bool nor floats."""
    dtype, shape = str(mask.dtype), tuple(int(size) for size in mask.shape)
    if not ("bool" in dtype or "float" in dtype):
        raise ArgumentError(f"attn_mask is {dtype}; pass a bool mask (True may be seen), or floats, which are added.")
    stretches = (have in (1, want) for have, want in zip(reversed(shape), reversed(whole), strict=False))
    if len(shape) > len(whole) or not all(stretches):
        raise ProblemError(f"attn_mask has shape {shape}; it must broadcast to (..., heads, Sq, Skv) = {whole}.")


def is_causal_bias(mask: Any) -> bool:
    """Whether a mask is a CausalBias of torch.nn.attention.bias: a tensor subclass that holds no mask, but says one.

    Told by name, because importing that module imports the compiler, several seconds.
    """
    kind = type(mask)
    return kind.__name__ == "CausalBias" and kind.__module__ == "torch.nn.attention.bias"


def aligned_bottom_right(bias: Any, query: Shape, key: Shape) -> bool:
    """Whether a CausalBias lets the last query see the last key; else query 0 sees key 0. Raises ProblemError."""
    lengths = (*query[-2:-1], *key[-2:-1])
    if len(lengths) == 2 and (bias.seq_len_q, bias.seq_len_kv) != lengths:
        raise ProblemError(
            f"attn_mask is causal for {bias.seq_len_q} queries and {bias.seq_len_kv} keys, and there are "
            f"{lengths[0]} and {lengths[1]}; make it for these."
        )
    return bool(bias.variant.name == "LOWER_RIGHT") and bias.seq_len_q != bias.seq_len_kv


def copied_first(tensors: tuple[Any, ...]) -> tuple[str, ...]:
    """A sentence for each of query, key and value (torch tensors) that a kernel of ours copies before it reads it."""
    said = []
    for name, tensor in zip(("query", "key", "value"), tensors, strict=False):
        if not hasattr(tensor, "data_ptr"):
            continue
        size = tensor.element_size()
        if tensor.shape[-1] > 1 and tensor.stride(-1) != 1:
            said.append(f"{name} is copied first: its last dimension is not contiguous")
        elif tensor.is_cuda and any(
            number % TMA_BYTES for number in (tensor.data_ptr(), *(step * size for step in tensor.stride()[:-1]))
        ):
            said.append(f"{name} is copied first: its base or a stride is no multiple of {TMA_BYTES} bytes")
    return tuple(said)


def _device(tensor: Any) -> str:
    device = getattr(tensor, "device", "cpu")
    return str(device) if hasattr(device, "type") else "cpu"
