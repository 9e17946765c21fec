"""The one judge of a call, whichever front end it came by; and the problem that it poses."""

import math
from typing import Any, NamedTuple

from attention.call import NO_EXTRAS, STARTS, Extras, Options, asked_of
from attention.errors import ArgumentError, ProblemError
from attention.feature import Operand
from attention.features import OPERANDS
from attention.judge.shapes import (
    Layout,
    Shape,
    device_of,
    differ,
    known,
    one_device,
    one_dtype,
    sizes_of,
    word_of,
)
from attention.problem import DTYPE_BYTES, AttentionProblem

FLOATS, INTEGERS = tuple(DTYPE_BYTES), ("int32", "int64")


class Judged(NamedTuple):
    """What the tensors of a sound call say of its problem. Batch, sequences and tokens may be 0, or symbols."""

    batch: int
    heads_q: int
    heads_kv: int
    seq_q: int
    seq_kv: int
    head_dim: int
    head_dim_v: int
    dtype: str
    device: str
    varlen: bool = False
    tokens_q: int = 0
    tokens_kv: int = 0

    @property
    def empty(self) -> bool:
        """Whether there are no queries, or no keys."""
        return 0 in (self.batch, self.seq_q, self.seq_kv) or (self.varlen and 0 in (self.tokens_q, self.tokens_kv))

    def cut(self, parts: int) -> "Judged":
        """With each sequence cut into so many packed ones."""
        if parts == 1:
            return self
        tokens = (self.tokens_q, self.tokens_kv) if self.varlen else (self.batch * self.seq_q, self.batch * self.seq_kv)
        return self._replace(batch=self.batch * parts, varlen=True, tokens_q=tokens[0], tokens_kv=tokens[1])

    def problem(self, options: Options, extras: Extras, **more: Any) -> AttentionProblem:
        """Nothing is computed of what has a size of 0, which no problem has: it counts as 1. Raises ProblemError."""
        sizes = self._asdict()
        sizes.update(batch=max(1, self.batch), seq_q=max(1, self.seq_q), seq_kv=max(1, self.seq_kv))
        return AttentionProblem(**sizes, scale=options.scale, **asked_of(options, extras), **more)


def judged(
    layout: Layout,
    tensors: tuple[Any, Any, Any],
    extras: Extras = NO_EXTRAS,
    options: Options = Options(),  # noqa: B008  it is immutable
    enable_gqa: bool = True,
) -> Judged:
    """Query, key and value, and whatever else, are torch's, Facts, or anything with shape and dtype.

    Raises ProblemError.
    """
    query, *_ = tensors
    dtype, device = one_dtype(layout, tensors), one_device(layout, tensors)
    sizes = sizes_of(layout, tensors, enable_gqa)
    found = Judged(math.prod(sizes.batch), *sizes[1:], dtype, device.split(":")[0])
    if extras is NO_EXTRAS:
        return found
    sequences = _sequences(layout, query, extras)
    if sequences is not None:
        if any(differ(size, 1) for size in sizes.batch):
            raise ProblemError(f"{layout.names[0]} has batch {sizes.batch[0]}; packed sequences have batch 1.")
        for name in ("max_seqlen_q", "max_seqlen_k"):
            if known(getattr(options, name) < 0):
                raise ProblemError(f"{name} is {getattr(options, name)}; pass the length of the longest sequence.")
        longest = {"seq_q": options.max_seqlen_q, "seq_kv": options.max_seqlen_k}
        found = found._replace(batch=sequences, varlen=True, tokens_q=sizes.seq_q, tokens_kv=sizes.seq_kv, **longest)
    for operand, given in zip(OPERANDS, extras, strict=False):
        if given is not None:
            batch = sizes.batch if operand.stretch else (found.batch,)
            axes = {"b": batch, "h": (sizes.heads_q,), "q": (sizes.seq_q,), "k": (sizes.seq_kv,)}
            whole = tuple(size for axis in operand.axes for size in axes[axis])
            _operand_that_fits(layout, operand, given, query, whole)
    return found


def fits(
    layout: Layout, name: str, given: Any, query: Any, allowed: tuple[Shape, ...], dtypes: tuple[str, ...]
) -> None:
    """Raise for another tensor than query, key and value where its device, its shape or its dtype is none of these."""
    there, here = device_of(given), device_of(query)
    if there != here:
        raise ProblemError(f"{name} is on {there} and {layout.names[0]} on {here}; move both to one device.")
    shape = tuple(given.shape)
    if not any(len(shape) == len(each) and not any(map(differ, shape, each)) for each in allowed):
        raise ProblemError(f"{name} has shape {shape}; give it {' or '.join(map(str, allowed))}.")
    if word_of(given.dtype) not in dtypes:
        raise ArgumentError(f"{name} is {given.dtype}; pass {' or '.join(dtypes)}.")


def _operand_that_fits(layout: Layout, operand: Operand, given: Any, query: Any, whole: Shape) -> None:
    name, shape = layout.called(operand.name), tuple(given.shape)
    exact = FLOATS if layout.casts else ("float64" if word_of(query.dtype) == "float64" else "float32",)
    of_counts = INTEGERS if layout.casts else INTEGERS[:1]
    dtypes = {"mask": ("bool", *FLOATS), "count": of_counts}.get(operand.holds, exact)
    allowed = tuple(whole[skipped:] for skipped in range(len(operand.leaves), -1, -1))
    if operand.stretch:
        pairs = zip(reversed(shape), reversed(whole), strict=False)
        ranks = range(0 if layout.folds else len(whole), len(whole) + 1)
        if len(shape) not in ranks or any(differ(have, want) and differ(have, 1) for have, want in pairs):
            rank = "" if layout.folds else f"have {len(whole)} dimensions and "
            raise ProblemError(f"{name} has shape {shape}; it must {rank}broadcast to {whole}.")
        allowed = (shape,)
    fits(layout, name, given, query, allowed, dtypes)


def _sequences(layout: Layout, query: Any, extras: Extras) -> int | None:
    """How many sequences are packed, or None."""
    starts = {name: given for name in STARTS if (given := getattr(extras, name)) is not None}
    if not starts:
        return None
    if len(starts) == 1:
        raise ProblemError("cu_seqlens_q and cu_seqlens_k go together; give both, or none.")
    for name, given in starts.items():
        if len(given.shape) != 1 or known(given.shape[0] == 0):
            raise ProblemError(f"{name} has shape {tuple(given.shape)}; give it (sequences + 1,), beginning with 0.")
        fits(layout, name, given, query, (given.shape,), INTEGERS if layout.casts else INTEGERS[:1])
    of_q, of_k = (given.shape[0] - 1 for given in starts.values())
    if differ(of_q, of_k):
        raise ProblemError(
            f"cu_seqlens_q says {of_q} sequences and cu_seqlens_k {of_k}; give both one entry more than there are "
            "sequences."
        )
    return of_q  # type: ignore[no-any-return]
