"""One attention forward with any of its features: inputs in poisoned memory, the float64 oracle, the rule of error.

Nothing here knows a kernel. A module beside this one launches the kernel of an architecture on the same cases:
forward_sm90a.py.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from attention.band import Alignment
from attention.oracle.reference import compare
from attention.problem import AttentionProblem
from microbench.verify.differential.attention_case import bf16_bits, from_bf16
from tests.emulated.poisoned import Memory

Array = NDArray[Any]
Floats = NDArray[np.float64]

# Of the largest term that enters a row's lse: float32 rounding, found at 2^-22 of it.
LSE_TOLERANCE = 2.0**-20


@dataclass(frozen=True)
class ForwardCase:
    """A problem with random inputs. Query i sees keys i + left <= j <= i + right; None leaves a side open.

    aligned     where the band lies as it says, or further right by keys - queries
    lengths     (queries, keys) of packed sequences; batch and lengths above are ignored, and `spare` rows that belong
                to no sequence follow them
    ranges      (queries, keys with padding, padding in front) that each sequence uses of its slot; the rest is NaN
    alibi       'heads': one slope a head; 'batch': one for each batch and head
    mask        'full': a byte for every score; 'keys': one for each batch and key, broadcast; 'bias': a float for
                every score, in the dtype of the inputs; 'shared' and 'shared bias': such, the same for all heads
    memory      the order in which dimensions lie in memory
    spread      standard deviation of queries: above 1, maxima grow from tile to tile
    scaled      the softmax scale; None for 1/sqrt(head_dim)
    """

    batch: int = 1
    heads_q: int = 2
    heads_kv: int = 1
    seq_q: int = 100
    seq_kv: int = 133
    head_dim: int = 64
    head_dim_v: int = 0  # 0: the same
    dtype: Literal["bfloat16", "float16"] = "bfloat16"
    left: int | None = None
    right: int | None = None
    aligned: Alignment = "top_left"
    softcap: float = 0.0
    alibi: Literal["", "heads", "batch"] = ""
    sinks: bool = False
    mask: Literal["", "full", "keys", "bias", "shared", "shared bias"] = ""
    lengths: tuple[tuple[int, int], ...] = ()
    spare: int = 0
    ranges: tuple[tuple[int, int, int], ...] = ()
    memory: Memory = "bhsd"
    spread: float = 1.0
    seed: int = 0
    scaled: float | None = None

    @property
    def sequences(self) -> tuple[tuple[int, int], ...]:
        """(queries, keys) of each sequence."""
        return self.lengths or ((self.seq_q, self.seq_kv),) * self.batch

    @property
    def longest(self) -> tuple[int, int]:
        """The most queries, and the most keys, of a sequence."""
        queries, keys = zip(*self.sequences, strict=True)
        return max(queries), max(keys)

    @property
    def biased(self) -> bool:
        """Whether the mask is of floats."""
        return self.mask in ("bias", "shared bias")

    @property
    def scale(self) -> float:
        """Before the softmax."""
        return float(self.head_dim**-0.5) if self.scaled is None else self.scaled

    @property
    def problem(self) -> AttentionProblem:
        """What the kernel is compiled for: the features, and sizes of which no edge hides nothing."""
        (queries, keys), count = self.longest, len(self.sequences)
        return AttentionProblem(
            *(count, self.heads_q, self.heads_kv, max(2, queries), max(2, keys), self.head_dim, self.head_dim_v),
            dtype=self.dtype,
            device="cuda",
            causal=self.right is not None,
            window=(-1 if self.left is None else 0, -1),
            softcap=self.softcap,
            alibi=bool(self.alibi),
            sinks=self.sinks,
            mask="float" if self.biased else "bool" if self.mask else "none",
            varlen=bool(self.lengths),
            ranges=bool(self.ranges),
            scale=self.scaled,
        )

    def bits(self, values: Array) -> NDArray[np.uint16]:
        """Values rounded to the dtype."""
        return bf16_bits(values) if self.dtype == "bfloat16" else values.astype(np.float16).view(np.uint16)

    def values(self, bits: NDArray[np.uint16]) -> Array:
        """The numbers that these bits are."""
        return from_bf16(bits) if self.dtype == "bfloat16" else bits.view(np.float16)


@dataclass(frozen=True)
class Inputs:
    """What a case draws: (batch, heads, sequence, head dim) as bits, one batch where packed; and the features'."""

    q: NDArray[np.uint16]
    k: NDArray[np.uint16]
    v: NDArray[np.uint16]
    slopes: NDArray[np.float32]  # (batch or 1, heads)
    sinks: NDArray[np.float32]
    mask: Array  # (batch, heads or 1, queries or 1, keys): bytes, or 16 bits of floats


def inputs_of(case: ForwardCase) -> Inputs:
    """Normal inputs; slopes as of eight heads, sinks that take up a share, and a mask that hides two scores of five."""
    rng = np.random.default_rng(case.seed)
    queries, keys = np.sum(case.sequences, 0) + case.spare if case.lengths else case.longest
    batch, count = (1 if case.lengths else case.batch), len(case.sequences)
    rows = (batch, case.heads_kv, keys)
    q = rng.standard_normal((batch, case.heads_q, queries, case.head_dim)) * case.spread
    k, v = (rng.standard_normal((*rows, width)) for width in (case.head_dim, case.head_dim_v or case.head_dim))
    if case.lengths and case.spare:
        q[:, :, -case.spare :] = k[:, :, -case.spare :] = v[:, :, -case.spare :] = np.nan
    if case.ranges:
        used_q, used_k = np.zeros(q.shape[::2][:2], bool), np.zeros(k.shape[::2][:2], bool)
        for place in places(case):
            used_q[place.batch, place.used], used_k[place.batch, place.keys] = True, True
        pairs = ((used_q, q), (used_k, k), (used_k, v))
        q, k, v = (np.where(used[:, None, :, None], each, np.nan) for used, each in pairs)
    slopes = rng.uniform(0.01, 0.5, (count if case.alibi == "batch" else 1, case.heads_q))
    heads, rows = (1 if "shared" in case.mask else case.heads_q), case.longest[0]
    seen = (count, 1, 1, case.longest[1]) if case.mask in ("", "keys") else (count, heads, rows, case.longest[1])
    mask = (rng.random(seen) < 0.6).astype(np.uint8)
    if case.biased:
        mask = case.bits(np.where(rng.random(seen) < 0.1, -np.inf, 3 * rng.standard_normal(seen)))
    return Inputs(
        *(case.bits(each) for each in (q, k, v)),
        slopes=slopes.astype(np.float32),
        sinks=rng.normal(1, 2, case.heads_q).astype(np.float32),
        mask=mask,
    )


def along_one(case: ForwardCase, q: Array, k: Array) -> Inputs:
    """Inputs whose scores are q[i] * k[j], rounded nowhere before the scale: Q and K have one dimension."""
    drawn = inputs_of(case)
    queries, keys = (np.zeros(bits.shape, np.float32) for bits in (drawn.q, drawn.k))
    queries[..., 0], keys[..., 0] = q, k
    return replace(drawn, q=case.bits(queries), k=case.bits(keys))


@dataclass(frozen=True)
class Place:
    """Where a sequence lies in the tensors: all its queries, those that it uses, and its keys, the first being `first`.

    `first` counts from where the sequence begins.
    """

    batch: int
    queries: slice
    used: slice
    keys: slice
    first: int


def places(case: ForwardCase) -> Iterator[Place]:
    """Of every sequence, in order."""
    row = column = 0
    for index, (queries, keys) in enumerate(case.sequences):
        used, end, first = case.ranges[index] if case.ranges else (queries, keys, 0)
        first = min(first, end)
        yield Place(
            0 if case.lengths else index,
            slice(row, row + queries),
            slice(row, row + used),
            slice(column + first, column + end),
            first,
        )
        if case.lengths:
            row, column = row + queries, column + keys


@dataclass(frozen=True)
class Expected:
    """The oracle's outputs, and torch's in low precision. NaN where a packed tensor has rows of no sequence."""

    out: Floats
    lse: Floats
    low: Floats
    largest: Floats  # of each row: the largest of 1, cap, sinks, and of what sums up to a score that it sees


def expected_of(case: ForwardCase, inputs: Inputs) -> Expected:
    """Attention of every sequence in float64, and as torch would do it: products in the dtype, a softmax in float32."""
    out, low = (np.full((*inputs.q.shape[:3], inputs.v.shape[3]), np.nan) for _ in range(2))
    lse, largest = (np.full(inputs.q.shape[:3], np.nan) for _ in range(2))
    for index, place in enumerate(places(case)):
        at, rows, columns = (place.batch, slice(None)), place.used, place.keys
        out[(*at, place.queries)] = low[(*at, place.queries)] = 0.0
        lse[(*at, place.queries)], largest[(*at, place.queries)] = -np.inf, 1.0
        tensors = tuple(
            torch.from_numpy(case.values(bits[(*at, some)]).astype(np.float64))
            for bits, some in ((inputs.q, rows), (inputs.k, columns), (inputs.v, columns))
        )
        given = (case, inputs, index, place.first, *tensors)
        out[(*at, rows)], lse[(*at, rows)], largest[(*at, rows)] = _attend(*given, torch.float64)
        low[(*at, rows)] = _attend(*given, getattr(torch, case.dtype))[0]
    return Expected(out, lse, low, largest)


def _attend(
    case: ForwardCase,
    inputs: Inputs,
    index: int,
    first: int,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    kind: torch.dtype,
) -> tuple[Floats, Floats, Floats]:
    """Out (heads, queries, head dim), lse and the largest terms of one sequence, both products in `kind`."""
    softmax = torch.promote_types(kind, torch.float32)
    group = case.heads_q // case.heads_kv
    q, k, v = q.to(kind), *(each.repeat_interleave(group, 0).to(kind) for each in (k, v))
    scores = (q @ k.mT).to(softmax) * case.scale
    queries, keys = scores.shape[-2:]
    ahead = torch.arange(keys)[None] - torch.arange(queries)[:, None]
    moved = keys - queries if case.aligned == "bottom_right" else 0
    terms = (q.abs() @ k.abs().mT).to(softmax) * case.scale  # a sum is as wrong as its summands are large
    if case.softcap:
        scores = case.softcap * torch.tanh(scores / case.softcap)
    if case.alibi:
        slopes = torch.from_numpy(inputs.slopes[index if case.alibi == "batch" else 0]).to(softmax)
        bias = slopes[:, None, None] * (ahead - (keys - queries)).abs()
        scores, terms = scores - bias, terms + bias
    hidden = torch.zeros(queries, keys, dtype=torch.bool)
    if case.right is not None:
        hidden |= ahead > case.right + moved
    if case.left is not None:
        hidden |= ahead < case.left + moved
    if case.biased:
        bias = torch.from_numpy(case.values(inputs.mask[index]).astype(np.float64)).to(softmax)
        bias = bias[:, :queries, first : first + keys]
        scores, terms = scores + bias, terms + bias.abs().masked_fill(bias == -math.inf, 0.0)
    elif case.mask:
        hidden = hidden | torch.from_numpy(inputs.mask[index][:, :queries, first : first + keys] == 0)
    scores = scores.masked_fill(hidden, -math.inf)
    if case.sinks:
        column = torch.from_numpy(inputs.sinks).to(softmax)[:, None, None].expand(-1, queries, 1)
        scores = torch.cat((scores, column), -1)
    sink = float(np.abs(inputs.sinks).max()) if case.sinks else 0.0
    least = torch.full((*scores.shape[:2], 1), max(1.0, case.softcap, sink))
    largest = torch.cat((terms.masked_fill(hidden, 0.0), least), -1).amax(-1)
    lse = torch.logsumexp(scores, -1)
    weights = torch.softmax(scores, -1)[..., :keys].where(lse[..., None] > -math.inf, 0)
    return (weights.to(kind) @ v).double().numpy(), lse.double().numpy(), largest.double().numpy()


@dataclass(frozen=True)
class Outputs:
    """What a kernel left: bits of out, float32 lse, and whether it wrote anywhere else."""

    out: NDArray[np.uint16]
    lse: NDArray[np.float32]
    strayed: str = ""


def judge(case: ForwardCase, inputs: Inputs, outputs: Outputs) -> str:
    """Why the outputs are wrong; empty where they obey the rule of attention.oracle.reference, and lse by itself."""
    expected = expected_of(case, inputs)
    out = compare(case.values(outputs.out), expected.out, expected.low, case.dtype)
    if outputs.strayed or not out.ok:
        return outputs.strayed or f"out: {out}"
    got, want = outputs.lse.astype(np.float64), expected.lse
    if not all(np.array_equal(test(got), test(want)) for test in (np.isnan, np.isposinf, np.isneginf)):
        return "lse: NaN or inf at other places than the oracle"
    finite = np.isfinite(want)
    error = np.abs(got[finite] - want[finite])
    wrong = error > LSE_TOLERANCE * expected.largest[finite]
    return f"lse: error {error.max():.3g}" if wrong.any() else ""
