"""AttentionProblem: what is asked, apart from who answers. Its errors are what users see.

    s   = scale * Q K^T                          Q (B, Hq, Sq, D)   K (B, Hkv, Skv, D)   V (B, Hkv, Skv, Dv)
    s   = softcap * tanh(s / softcap)            where softcap > 0
    s   = s - slope * |i + Skv - Sq - j|         with ALiBi, a slope for each head (or batch and head)
    s   = s + mask, or -inf outside of a boolean mask and of the band
    out = softmax(s) V                           with sinks, one more logit in the denominator: rows sum to less than 1
    lse = log(sum(exp(s)) + exp(sink))           (B, Hq, Sq), natural logarithm: it holds the sink where there is one

A query that sees nothing has out = 0 and lse = -inf (its sink, where there is one). Causal is aligned top-left as
torch's `is_causal` is, query i seeing keys 0 to i, or bottom-right as flash-attn's, the last query seeing the last key.

Scores of float16 and bfloat16 are float32, before the scale and after it. Where one is beyond 3.4e38 its row is NaN, as
in torch's float32; one below -3.4e38 hides its key. Outputs are float32 sums of p V before they are divided by the sum
of p, which is at most 1024 for each key: values beyond 3e35 / Skv may overflow.
No torch here: dtypes and devices are words.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from attention.band import Band
from attention.errors import ArgumentError, DtypeError, ProblemError
from attention.feature import Word, finite
from attention.features import FEATURES

WORDS: tuple[Word, ...] = (
    Word("dropout", lambda problem: problem.dropout_p > 0, (("without dropout", {"dropout_p": 0.0}),)),
    *(word for feature in FEATURES for word in feature.words),
    Word(
        "variable lengths",
        lambda problem: problem.varlen,
        (("one sequence at a time", {"varlen": False, "batch": 1}),),
    ),
)
FEATURE_WORDS = tuple(word.name for word in WORDS)
SIZES = ("batch", "heads_q", "heads_kv", "seq_q", "seq_kv", "head_dim", "head_dim_v", "tokens_q", "tokens_kv")
TOKENS = 2  # of these, the last ones

LARGEST = 2**31 - 1  # kernels index rows, heads and keys in 32 bits
DTYPE_BYTES: dict[str, int] = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
SHORT_DTYPES = {"f16": "float16", "half": "float16", "bf16": "bfloat16", "f32": "float32", "float": "float32"}
SHORT_DTYPES |= {"fp16": "float16", "fp32": "float32", "f64": "float64", "fp64": "float64", "double": "float64"}


def _with_fields_of_features(problem: type) -> type:
    """The class, before it is made a dataclass, with the fields that features add."""
    for feature in FEATURES:
        for name, default in feature.fields:
            problem.__annotations__[name] = type(default)
            setattr(problem, name, default)
    return problem


@dataclass(frozen=True)
@_with_fields_of_features
class AttentionProblem:
    """One attention forward: sizes, dtype and features. Hashable, so that a choice can be cached by it.

    Packed sequences (`varlen`) have batch sequences of at most seq_q queries and seq_kv keys; tokens_q and tokens_kv
    are the rows of the packed tensors. Raises ProblemError where the fields describe no problem.

    Further fields are those of features, with their defaults: causal, alignment, window, softcap, alibi, sinks, mask,
    ranges.
    What two ways of saying have in common is kept in one: see `checked` of a feature.
    """

    batch: int
    heads_q: int
    heads_kv: int
    seq_q: int
    seq_kv: int
    head_dim: int
    head_dim_v: int = 0  # 0 stands for head_dim, and is replaced by it
    dtype: str = "float32"
    device: str = "cpu"
    scale: float | None = None  # None stands for 1/sqrt(head_dim), and is replaced by it
    enable_gqa: bool = True
    dropout_p: float = 0.0
    varlen: bool = False
    tokens_q: int = 0  # of packed tensors; 0 stands for batch * seq_q, and is replaced by it
    tokens_kv: int = 0

    if TYPE_CHECKING:

        def __init__(self, *sizes: int, **fields: Any) -> None: ...

        def __getattr__(self, name: str) -> Any: ...

    def __post_init__(self) -> None:
        """Fill in what a default stands for, refuse what makes no sense, and write the rest in one way."""
        if type(self.dtype) is not str or self.dtype not in DTYPE_BYTES:
            self._set("dtype", normalise_dtype(self.dtype))
        if self.head_dim_v == 0:
            self._set("head_dim_v", self.head_dim)
        heads_in_groups(self.heads_q, self.heads_kv, self.enable_gqa)
        sizes_in_reach(_sizes(self))
        if self.scale is None:
            self._set("scale", 1.0 / math.sqrt(self.head_dim))
        self._set("scale", finite("scale", self.scale, "a finite number, or None for 1/sqrt(head_dim)"))
        if not 0.0 <= self.dropout_p <= 1.0:
            raise ProblemError(f"dropout_p is {self.dropout_p}; give a probability from 0 to 1.")
        if self.varlen:
            self._set("tokens_q", self.tokens_q or self.batch * self.seq_q)
            self._set("tokens_kv", self.tokens_kv or self.batch * self.seq_kv)
        for feature in FEATURES:
            for name, value in feature.checked(self).items():
                self._set(name, value)

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def __hash__(self) -> int:
        """Computed once: a problem is the key of every cache of a call."""
        try:
            known: int = self._hash
        except AttributeError:
            known = hash(_values(self))
            self._set("_hash", known)
        return known

    def __getstate__(self) -> dict[str, Any]:
        """Without what is kept beside the fields: another process would compute another hash."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def softmax_scale(self) -> float:
        """The factor before the softmax, never None."""
        assert self.scale is not None
        return self.scale

    @property
    def element_bytes(self) -> int:
        """Bytes of one element of Q, K, V and out."""
        return DTYPE_BYTES[self.dtype]

    @property
    def own_lengths(self) -> bool:
        """Whether each sequence has lengths of its own, which lie on the device; seq_q and seq_kv are the most."""
        return bool(self.varlen or self.ranges)

    @cached_property
    def edges(self) -> Band:
        """The band relative to the diagonal of its alignment: a kernel moves it where lengths are each sequence's."""
        left, right = self.window
        return Band(-left if left >= 0 else None, 0 if self.causal else right if right >= 0 else None)

    def band(self, seq_q: int | None = None, seq_kv: int | None = None) -> Band:
        """Query i sees keys j with i + left <= j <= i + right, of one sequence (by default the longest's lengths)."""
        rows, keys = self.seq_q if seq_q is None else seq_q, self.seq_kv if seq_kv is None else seq_kv
        return self.edges.moved(keys - rows if self.alignment == "bottom_right" else 0)

    @cached_property
    def features(self) -> tuple[str, ...]:
        """What is asked beyond softmax(scale Q K^T) V, full or causal from the top left."""
        return tuple(word.name for word in WORDS if word.asked(self))

    @property
    def scores(self) -> int:
        """Score elements that the band lets through, over all batches and heads; a mask is not counted.

        Exact, except for packed sequences, whose lengths lie on the device: as if each had the mean of them.
        """
        rows, keys = self.mean_lengths
        return self.batch * self.heads_q * self.band(rows, keys).scores(rows, keys)

    @property
    def mean_lengths(self) -> tuple[int, int]:
        """Queries and keys of one sequence: seq_q and seq_kv, or for packed sequences the mean, at least 1."""
        if not self.varlen:
            return self.seq_q, self.seq_kv
        return max(1, round(self.tokens_q / self.batch)), max(1, round(self.tokens_kv / self.batch))

    @property
    def flops(self) -> float:
        """The convention of the field: 4*B*H*Sq*Skv*D (2*(D+Dv) where they differ), halved for causal.

        With a window, which has no convention, the scores that are seen.
        """
        width = 2.0 * (self.head_dim + self.head_dim_v)
        if self.window != (-1, -1):
            return width * self.scores
        rows, keys = self.mean_lengths
        full = width * self.batch * self.heads_q * rows * keys
        return full / 2 if self.causal else full

    def __str__(self) -> str:
        shape = f"B={self.batch} Hq={self.heads_q} Hkv={self.heads_kv} Sq={self.seq_q} Skv={self.seq_kv}"
        width = f"D={self.head_dim}" + (f" Dv={self.head_dim_v}" if self.head_dim_v != self.head_dim else "")
        words = [word for feature in FEATURES for word in feature.told(self)]
        words += [f"varlen={self.tokens_q},{self.tokens_kv}"] if self.varlen else []
        return f"{shape} {width} {self.dtype} {' '.join(words)}"

    def on(self, device: str) -> "AttentionProblem":
        """The same problem on another kind of device ('cpu' or 'cuda')."""
        return self if device == self.device else replace(self, device=device)

    @classmethod
    def parse_shape(cls, text: str, **features: Any) -> "AttentionProblem":
        """'B,Hq,Hkv,Sq,Skv,D' or 'B,Hq,Hkv,Sq,Skv,D,Dv' as typed on a command line. Raises ProblemError."""
        parts = [part.strip() for part in text.split(",")]
        if len(parts) not in (6, 7) or not all(_is_whole(part) for part in parts):
            raise ProblemError(
                f"The shape {text!r} is not B,Hq,Hkv,Sq,Skv,D; write six or seven whole numbers, 1,8,8,1024,1024,64."
            )
        batch, heads_q, heads_kv, seq_q, seq_kv, dim, dim_v = (*map(int, parts), 0)[:7]
        return cls(batch, heads_q, heads_kv, seq_q, seq_kv, dim, dim_v, **features)


_values = attrgetter(*(each.name for each in fields(AttentionProblem)))
_sizes = attrgetter(*SIZES)


def sizes_in_reach(sizes: tuple[int, ...]) -> None:
    """Raise ProblemError for one of SIZES below 1 (tokens of packed sequences: 0), or above what kernels count to."""
    if min(sizes[:-TOKENS]) >= 1 and min(sizes[-TOKENS:]) >= 0 and max(sizes) <= LARGEST:
        return
    for name, size in zip(SIZES, sizes, strict=True):
        if size < 1 and not (size == 0 and name.startswith("tokens")):
            raise ProblemError(f"{name} is {size}; every size of an attention problem is at least 1.")
        if size > LARGEST:
            raise ProblemError(f"{name} is {size}; no size of an attention problem is above 2**31 - 1.")


def heads_in_groups(heads_q: int, heads_kv: int, enable_gqa: bool = True, holds: Callable[[Any], bool] = bool) -> None:
    """Raise ProblemError unless each key head serves one query head, or with enable_gqa the same number of them.

    `holds`: whether a comparison is known to be true, where numbers may be symbols.
    """
    if not holds(heads_q != heads_kv):
        return
    if not enable_gqa:
        raise ProblemError(
            f"query has {heads_q} heads and key {heads_kv}; give both the same number, or pass enable_gqa=True."
        )
    if holds(heads_kv == 0) or holds(heads_q % heads_kv != 0):
        raise ProblemError(
            f"query has {heads_q} heads and key {heads_kv}; each key head must serve a whole number of query heads."
        )


def normalise_dtype(name: Any) -> str:
    """'bf16' -> 'bfloat16'. Raises DtypeError with the list of dtypes; ArgumentError, a TypeError, for no word."""
    if not isinstance(name, str):
        word = str(name).removeprefix("torch.")
        raise ArgumentError(f"dtype is {name!r}, a {type(name).__name__}; give a word, such as {word!r}.")
    full = SHORT_DTYPES.get(name.lower(), name.lower()).removeprefix("torch.")
    if full not in DTYPE_BYTES:
        raise DtypeError(f"The dtype {name!r} has no attention kernel; use one of {', '.join(DTYPE_BYTES)}.")
    return full


def _is_whole(text: str) -> bool:
    return text.lstrip("-").isascii() and text.lstrip("-").isdigit()
