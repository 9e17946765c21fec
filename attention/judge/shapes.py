"""Which dimension of a front end's tensors is which, and what query, key and value say together.

No torch here: anything with shape and dtype will do. Sizes may be symbols of torch's compiler: what they leave open is
judged when the graph runs.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from attention.errors import ProblemError

Shape = tuple[Any, ...]  # of int, or torch.SymInt
TMA_BYTES = 16  # of which a base and strides are multiples that a GPU kernel of ours reads in place


class Facts(NamedTuple):
    """What there is to judge of a tensor."""

    shape: Any
    dtype: Any
    device: Any


def facts_of(tensor: Any) -> tuple[Any, Any, Any]:
    """A plain tuple: a key of caches, made in a third of the time."""
    return tensor.shape, tensor.dtype, tensor.device


@dataclass(frozen=True, eq=False)
class Layout:
    """How callers of a front end lay their tensors out, and what they call them. Told by identity: a quick key.

    heads, rows   dimensions, counted from the last; what lies in front of the three is the batch
    others        what they call operands of features, where they have words of their own
    folds         dimensions may be missing in front, or be more, and are stretched as torch's own function does
    casts         floats of a feature are taken in every precision, and starts of sequences in 64 bits
    """

    words: str
    heads: int = -3
    rows: int = -2
    names: tuple[str, str, str] = ("query", "key", "value")
    others: tuple[tuple[str, str], ...] = ()
    folds: bool = False
    casts: bool = False

    def called(self, operand: str) -> str:
        return dict(self.others).get(operand, operand)


OPERATOR = Layout("(batch, heads, sequence, head_dim)")
SDPA = replace(OPERATOR, others=(("mask", "attn_mask"),), folds=True)
FLASH = Layout(
    *("(batch, sequence, heads, head_dim)", -2, -3, ("q", "k", "v")), others=(("alibi", "alibi_slopes"),), casts=True
)
PACKED = replace(FLASH, words="(tokens, heads, head_dim)")


class Sizes(NamedTuple):
    """Of tensors that fit. `batch` is every dimension in front of the other three."""

    batch: Shape
    heads_q: int
    heads_kv: int
    seq_q: int
    seq_kv: int
    head_dim: int
    head_dim_v: int


def sizes_of(layout: Layout, tensors: tuple[Any, ...], enable_gqa: bool = True) -> Sizes:
    """Raises ProblemError, which names the tensors that do not fit. Heads in groups are judged by the problem."""
    shapes = [tuple(tensor.shape) for tensor in tensors]
    rank = layout.words.count(",") + 1
    for name, shape in zip(layout.names, shapes, strict=True):
        if len(shape) < 2 if layout.folds else len(shape) != rank:
            raise ProblemError(f"{name} has shape {shape}; give it the layout {layout.words}.")
    if layout.folds:
        shapes = [(1,) * (3 - len(shape)) + shape for shape in _stretched(shapes, 3 if enable_gqa else 2)]
    (q, k, v), (of_q, of_k, of_v) = shapes, layout.names
    batches = [shape[:-3] for shape in shapes]
    if any(len(batch) != len(q) - 3 or any(map(differ, batch, batches[0])) for batch in batches):
        said = ", ".join(str(batch[0] if len(batch) == 1 else batch) for batch in batches)
        raise ProblemError(f"{of_q}, {of_k} and {of_v} have batches of {said}; give one size.")
    if differ(q[-1], k[-1]):
        raise ProblemError(f"{of_q} has head_dim {q[-1]} and {of_k} {k[-1]}; they must be equal.")
    heads, rows = layout.heads, layout.rows
    if differ(k[heads], v[heads]) or differ(k[rows], v[rows]):
        raise ProblemError(f"{of_k} {k} and {of_v} {v} must have the same heads and sequence length.")
    if known(v[-1] == 0):
        raise ProblemError(f"{of_v} has head_dim 0; every size of an attention problem is at least 1.")
    return Sizes(batches[0], q[heads], k[heads], q[rows], k[rows], q[-1], v[-1])


def one_dtype(layout: Layout, tensors: tuple[Any, ...]) -> str:
    first, *others = (each.dtype for each in tensors)
    if all(each is first for each in others):
        return word_of(first)
    return _one(layout, [word_of(each.dtype) for each in tensors], "are {}; cast them to one dtype")


def one_device(layout: Layout, tensors: tuple[Any, ...]) -> str:
    first, *others = (getattr(each, "device", "cpu") for each in tensors)
    if all(each == first for each in others):
        return device_of(tensors[0])
    return _one(layout, [device_of(each) for each in tensors], "are on {}; move them to one device")


def word_of(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def device_of(tensor: Any) -> str:
    """Its device, as a word; an array without one lies on the CPU."""
    device = getattr(tensor, "device", "cpu")
    return str(device) if hasattr(device, "type") else "cpu"


def differ(one: Any, other: Any) -> bool:
    return known(one != other)


def known(of_sizes: Any) -> bool:
    """True where sizes are known to satisfy it; False where symbols leave it open until the graph runs."""
    if isinstance(of_sizes, bool | np.bool_):
        return bool(of_sizes)
    from torch.fx.experimental.symbolic_shapes import guard_or_false  # half a second that no eager call pays

    return guard_or_false(of_sizes)


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


def _one(layout: Layout, words: list[str], said: str) -> str:
    """The word that query, key and value have in common. Raises ProblemError."""
    if len(set(words)) > 1:
        raise ProblemError("{}, {} and {} ".format(*layout.names) + said.format(", ".join(words)) + ".")
    return words[0]


def _stretched(shapes: list[Shape], keep: int) -> list[Shape]:
    """Stretch everything before the last `keep` dimensions, where that works; what does not is named later."""
    first = shapes[0][:-keep]
    if all(shape[:-keep] == first for shape in shapes[1:]):
        return shapes
    try:
        leading = np.broadcast_shapes(*(shape[:-keep] for shape in shapes))
    except ValueError:
        return shapes
    return [(*leading, *shape[-keep:]) for shape in shapes]
