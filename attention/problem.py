"""AttentionProblem: what is asked, apart from who answers. Its errors are what users see.

    out = softmax(scale * Q K^T + mask) V        Q (B, Hq, Sq, D)   K (B, Hkv, Skv, D)   V (B, Hkv, Skv, Dv)
    lse = log(sum(exp(scale * Q K^T + mask)))    (B, Hq, Sq), natural logarithm

Causal is aligned top-left, as torch's `is_causal` is: query i sees keys 0 to i, whatever the two lengths are.
No torch here: dtypes and devices are words.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from attention.errors import ProblemError

Shape = tuple[int, ...]
Mask = Literal["none", "bool", "float"]

DTYPE_BYTES: dict[str, int] = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
SHORT_DTYPES = {"f16": "float16", "half": "float16", "bf16": "bfloat16", "f32": "float32", "float": "float32"}
SHORT_DTYPES |= {"fp16": "float16", "fp32": "float32", "f64": "float64", "fp64": "float64", "double": "float64"}


@dataclass(frozen=True)
class AttentionProblem:
    """One attention forward: sizes, dtype and features. Hashable, so that a choice can be cached by it.

    Raises ProblemError where the fields describe no problem.
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
    causal: bool = False
    scale: float | None = None  # None stands for 1/sqrt(head_dim), and is replaced by it
    enable_gqa: bool = True
    mask: Mask = "none"
    dropout_p: float = 0.0

    def __post_init__(self) -> None:
        """Fill in what a default stands for, and refuse what makes no sense."""
        object.__setattr__(self, "dtype", normalise_dtype(self.dtype))
        if self.head_dim_v == 0:
            object.__setattr__(self, "head_dim_v", self.head_dim)
        _check_sizes(self)
        _check_heads(self.heads_q, self.heads_kv, self.enable_gqa)
        if self.scale is None:
            object.__setattr__(self, "scale", 1.0 / math.sqrt(self.head_dim))
        object.__setattr__(self, "scale", _finite_scale(self.scale))
        if not 0.0 <= self.dropout_p <= 1.0:
            raise ProblemError(f"dropout_p is {self.dropout_p}; give a probability from 0 to 1.")

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
    def scores(self) -> int:
        """Score elements that are not masked away by causality, over all batches and heads."""
        if not self.causal:
            return self.batch * self.heads_q * self.seq_q * self.seq_kv
        square = min(self.seq_q, self.seq_kv)
        visible = square * (square + 1) // 2 + max(0, self.seq_q - self.seq_kv) * self.seq_kv
        return self.batch * self.heads_q * visible

    @property
    def flops(self) -> float:
        """The convention of the field: 4*B*H*Sq*Skv*D (2*(D+Dv) where they differ), halved for causal."""
        full = 2.0 * self.batch * self.heads_q * self.seq_q * self.seq_kv * (self.head_dim + self.head_dim_v)
        return full / 2 if self.causal else full

    def __str__(self) -> str:
        shape = f"B={self.batch} Hq={self.heads_q} Hkv={self.heads_kv} Sq={self.seq_q} Skv={self.seq_kv}"
        width = f"D={self.head_dim}" + (f" Dv={self.head_dim_v}" if self.head_dim_v != self.head_dim else "")
        return f"{shape} {width} {self.dtype} {'causal' if self.causal else 'full'}"

    def on(self, device: str) -> "AttentionProblem":
        """The same problem on another kind of device ('cpu' or 'cuda')."""
        return replace(self, device=device)

    @classmethod
    def parse_shape(cls, text: str, **features: Any) -> "AttentionProblem":
        """'B,Hq,Hkv,Sq,Skv,D' or 'B,Hq,Hkv,Sq,Skv,D,Dv' as typed on a command line. Raises ProblemError."""
        parts = [part.strip() for part in text.split(",")]
        if len(parts) not in (6, 7) or not all(_is_whole(part) for part in parts):
            raise ProblemError(
                f"The shape {text!r} is not B,Hq,Hkv,Sq,Skv,D; write six whole numbers, 1,8,8,1024,1024,64."
            )
        batch, heads_q, heads_kv, seq_q, seq_kv, dim, dim_v = (*map(int, parts), 0)[:7]
        return cls(batch, heads_q, heads_kv, seq_q, seq_kv, dim, dim_v, **features)

    @classmethod
    def from_tensors(
        cls,
        query: Any,
        key: Any,
        value: Any,
        *,
        causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
        mask: Any = None,
        dropout_p: float = 0.0,
        broadcast: bool = False,
    ) -> "AttentionProblem":
        """Read a problem off three tensors (torch's, or anything with shape and dtype), (..., H, S, D).

        Leading dimensions before the heads fold into `batch`; 3 dimensions have one batch, 2 have one head as well.
        `broadcast` stretches those before the sequence as torch's own function does (heads only without enable_gqa).
        Raises ProblemError, whose sentence names the tensors as torch's signature does.
        """
        shapes = [tuple(int(size) for size in tensor.shape) for tensor in (query, key, value)]
        shapes = _checked(_broadcast(shapes, 3 if enable_gqa else 2) if broadcast else shapes)
        dtypes = [str(tensor.dtype).removeprefix("torch.") for tensor in (query, key, value)]
        if len(set(dtypes)) > 1:
            raise ProblemError(f"query, key and value are {', '.join(dtypes)}; cast them to one dtype.")
        devices = [_device(tensor) for tensor in (query, key, value)]
        if len(set(devices)) > 1:
            raise ProblemError(f"query, key and value lie on {', '.join(devices)}; move them to one device.")
        (*batch, heads_q, seq_q, head_dim), (*_, heads_kv, seq_kv, _), (*_, head_dim_v) = shapes
        return cls(
            *(math.prod(batch), heads_q, heads_kv, seq_q, seq_kv, head_dim, head_dim_v),
            dtype=dtypes[0],
            device=devices[0].split(":")[0],
            causal=bool(causal),
            scale=scale,
            enable_gqa=bool(enable_gqa),
            mask="none" if mask is None else "bool" if "bool" in str(mask.dtype) else "float",
            dropout_p=float(dropout_p),
        )


def normalise_dtype(name: str) -> str:
    """'bf16' -> 'bfloat16'. Raises ProblemError with the list of dtypes."""
    full = SHORT_DTYPES.get(name.lower(), name.lower()).removeprefix("torch.")
    if full not in DTYPE_BYTES:
        raise ProblemError(f"The dtype {name!r} has no attention kernel; use one of {', '.join(DTYPE_BYTES)}.")
    return full


def _broadcast(shapes: list[Shape], keep: int) -> list[Shape]:
    """Stretch everything before the last `keep` dimensions, where that works; what does not is named by _checked."""
    try:
        leading = np.broadcast_shapes(*(shape[:-keep] for shape in shapes))
    except ValueError:
        return shapes
    return [(*leading, *shape[-keep:]) for shape in shapes]


def _checked(shapes: list[Shape]) -> list[Shape]:
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
    if k[-3:-1] != v[-3:-1]:
        raise ProblemError(f"key {k} and value {v} must have the same heads and sequence length.")
    return shapes


def _device(tensor: Any) -> str:
    device = getattr(tensor, "device", "cpu")
    return str(device) if hasattr(device, "type") else "cpu"


def _check_sizes(problem: AttentionProblem) -> None:
    names = ("batch", "heads_q", "heads_kv", "seq_q", "seq_kv", "head_dim", "head_dim_v")
    for name in names:
        size = getattr(problem, name)
        if size < 1:
            raise ProblemError(f"{name} is {size}; every size of an attention problem is at least 1.")


def _check_heads(heads_q: int, heads_kv: int, enable_gqa: bool) -> None:
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


def _finite_scale(scale: float | None) -> float:
    try:
        number = float(scale)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ProblemError(f"scale is {scale!r}; give a finite number, or None for 1/sqrt(head_dim).") from None
    if not math.isfinite(number):
        raise ProblemError(f"scale is {number}; give a finite number, or None for 1/sqrt(head_dim).")
    return number


def _is_whole(text: str) -> bool:
    return text.lstrip("-").isascii() and text.lstrip("-").isdigit()
