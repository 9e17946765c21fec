"""Random calls of flash_attn_func and flash_attn_varlen_func, with the oracle's answer and a low-precision one."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from hypothesis import strategies as st

from attention import flash_attn_func, flash_attn_varlen_func
from attention.feature import At
from attention.features import OPERANDS
from attention.oracle import reference

OPERAND_NAMES = tuple(operand.name for operand in OPERANDS)
DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32, "float64": torch.float64}
LAYOUTS = ("dense", "slice of qkv", "heads first", "expanded", "columns")


@dataclass(frozen=True)
class Case:
    """One call. `lengths` are (queries, keys) of each sequence; a batch that is not packed has all alike."""

    seed: int
    lengths: tuple[tuple[int, int], ...]
    packed: bool
    heads_kv: int
    group: int
    dim: int
    dim_v: int
    dtype: str = "float32"
    causal: bool = False
    window: tuple[int, int] = (-1, -1)
    softcap: float = 0.0
    alibi: str = ""  # "", "heads" or "batch"
    sinks: bool = False
    layout: str = "dense"

    @property
    def heads(self):
        return self.heads_kv * self.group

    def tensors(self, device="cpu"):
        """q, k, v in flash-attn's layout, slopes and sinks."""
        generator = torch.Generator().manual_seed(self.seed)
        dtype = DTYPES[self.dtype]
        rows, keys = (sum(each[side] for each in self.lengths) for side in (0, 1))
        sizes = ((rows, self.heads, self.dim), (keys, self.heads_kv, self.dim), (keys, self.heads_kv, self.dim_v))
        if not self.packed:
            count = len(self.lengths)
            sizes = [(count, size[0] // count, *size[1:]) for size in sizes]
        q, k, v = (_moved(_laid_out(size, self.layout, generator), dtype, device) for size in sizes)
        shape = (self.heads,) if self.alibi == "heads" else (len(self.lengths), self.heads)
        slopes = torch.rand(shape, generator=generator).to(device) if self.alibi else None
        sinks = torch.randn(self.heads, generator=generator).to(device) if self.sinks else None
        return q, k, v, slopes, sinks

    def starts(self, side, device="cpu"):
        """cu_seqlens of queries (0) or keys (1)."""
        sums = np.cumsum([0, *(each[side] for each in self.lengths)])
        return torch.tensor(sums, dtype=torch.int32, device=device)

    def call(self, q, k, v, slopes, sinks, starts=None, **options):
        """(out, lse) of the public function; `starts` as from both of self.starts."""
        features = {"causal": self.causal, "window_size": self.window, "softcap": self.softcap, "softmax_scale": 0.4}
        features |= {"alibi_slopes": slopes, "sinks": sinks, "return_lse": True} | options
        if not self.packed:
            return flash_attn_func(q, k, v, **features)
        longest = [max(each[side] for each in self.lengths) for side in (0, 1)]
        starts = starts or tuple(self.starts(side, q.device) for side in (0, 1))
        return flash_attn_varlen_func(q, k, v, *starts, *longest, **features)

    def oracle(self, q, k, v, slopes, sinks):
        """Float64 (out, lse) in the layout of the public function."""
        arrays = [tensor.double().cpu().numpy() for tensor in (q, k, v)]
        features = {"causal": self.causal, "window": self.window, "softcap": self.softcap, "scale": 0.4}
        features |= {"alignment": "bottom_right"}
        features |= {"alibi": None if slopes is None else slopes.double().cpu().numpy()}
        features |= {"sinks": None if sinks is None else sinks.double().cpu().numpy()}
        if self.packed:
            heads_first = (array.swapaxes(0, 1) for array in arrays)
            out, lse = reference.packed(*heads_first, *(self.starts(side).numpy() for side in (0, 1)), **features)
            return out.swapaxes(0, 1), lse
        out, lse = reference.attention(*(array.swapaxes(1, 2) for array in arrays), **features)
        return out.swapaxes(1, 2), lse

    def hold(self, out, lse, tensors):
        """Against the oracle, by the project's rule; its own roundings count where it is no better than the result."""
        oracle, oracle_lse = self.oracle(*tensors)
        found = reference.compare(out.double().cpu().numpy(), oracle, self.low(*tensors), self.dtype)
        finite = np.isfinite(oracle_lse)
        largest = max(1.0, np.abs(oracle_lse, where=finite, out=np.zeros_like(oracle_lse)).max(initial=0))
        if self.dtype in ("float32", "float64"):
            eps = reference.ROUNDING_UNIT[self.dtype]
            assert found.positions_agree and found.error <= max(found.allowed, 60 * eps * largest), str(found)
        else:
            assert found.ok, str(found)
            eps = 2.0**-18  # torch's own kernel for 16-bit inputs approximates exp to 2**-17
        np.testing.assert_allclose(lse.double().cpu().numpy(), oracle_lse, rtol=0, atol=60 * eps * largest)

    def low(self, q, k, v, slopes, sinks):
        """The same formula in torch, every step in the inputs' own dtype: what the rule measures errors by."""
        out = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=q.dtype)
        parts = self.lengths if self.packed else [(slice(None), at) for at in range(len(self.lengths))]
        if self.packed:
            ranges = [list(pairwise(self.starts(side).tolist())) for side in (0, 1)]
            parts = [(slice(*rows), slice(*keys)) for rows, keys in zip(*ranges, strict=True)]
        for at, part in enumerate(parts):
            rows, keys = part if self.packed else ((at,), (at,))
            slope = None if slopes is None else slopes if slopes.dim() == 1 else slopes[at]
            out[rows] = self._low_of_one(q[rows].cpu(), k[keys].cpu(), v[keys].cpu(), slope, sinks)
        return out.double().numpy()

    def _low_of_one(self, q, k, v, slopes, sinks):
        q, k, v = (t.transpose(0, 1) for t in (q, *(t.repeat_interleave(self.group, 1) for t in (k, v))))
        rows, keys = q.shape[1], k.shape[1]
        at = At(torch.arange(rows)[:, None], torch.arange(keys), rows, keys)
        asked = {"causal": self.causal, "window": self.window, "softcap": self.softcap, "alignment": "bottom_right"}
        given = {"alibi": slopes, "sinks": sinks}
        operands = {name: None if t is None else t.cpu().to(q.dtype)[:, None, None] for name, t in given.items()}
        operands = dict.fromkeys(OPERAND_NAMES) | operands
        scores, logits = reference.scored(torch, (q * 0.4) @ k.mT, at, reference.asked(**asked), operands)
        scores = torch.cat([scores, *(each.expand(-1, rows, 1) for each in logits)], 2)
        return (scores.softmax(-1).nan_to_num(0.0)[..., :keys] @ v).transpose(0, 1)


def _laid_out(size, layout, generator):
    """Random values in one of the memory layouts that callers have, as float32."""
    values = torch.randn(size, generator=generator)
    *leading, rows, heads, dim = size
    if layout == "slice of qkv":
        tensor = torch.full((*leading, rows, 3, heads, dim), torch.nan)[..., 1, :, :]
    elif layout == "heads first":
        tensor = torch.empty(*leading, heads, rows, dim).transpose(-3, -2)
    elif layout == "columns":
        tensor = torch.empty(*leading, rows, dim, heads).transpose(-2, -1)
    elif layout == "expanded":
        return values[..., :1, :].expand(size)
    else:
        return values
    return tensor.copy_(values)


def _moved(tensor, dtype, device):
    """In another dtype and on another device with the same strides; what lies between its elements is NaN."""
    if 0 in tensor.shape:
        return tensor.to(device, dtype)
    reach = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    moved = torch.full((reach,), torch.nan, dtype=dtype, device=device).as_strided(tensor.shape, tensor.stride())
    if 0 in tensor.stride():
        moved[..., 0, :] = tensor[..., 0, :].to(device, dtype)
        return moved
    return moved.copy_(tensor)


@st.composite
def cases(draw, dtypes=tuple(DTYPES), longest=40, widest=64):
    """Any call: every feature alone and with every other."""
    packed = draw(st.booleans())
    length = st.integers(0 if packed else 1, longest)
    sequences = draw(st.integers(1, 3))
    if packed:
        lengths = tuple(draw(st.tuples(length, length)) for _ in range(sequences))
    else:
        lengths = (draw(st.tuples(length, st.integers(0, longest))),) * sequences
    edge = st.one_of(st.just(-1), st.integers(0, longest))
    dim = draw(st.integers(1, widest))
    return Case(
        seed=draw(st.integers(0, 2**31)),
        lengths=lengths,
        packed=packed,
        heads_kv=draw(st.integers(1, 2)),
        group=draw(st.integers(1, 3)),
        dim=dim,
        dim_v=draw(st.one_of(st.just(dim), st.integers(1, widest))),
        dtype=draw(st.sampled_from(dtypes)),
        causal=draw(st.booleans()),
        window=draw(st.one_of(st.just((-1, -1)), st.tuples(edge, edge))),
        softcap=draw(st.sampled_from([0.0, 0.0, 0.5, 15.0])),
        alibi=draw(st.sampled_from(["", "", "heads", "batch"])),
        sinks=draw(st.booleans()),
        layout=draw(st.sampled_from(LAYOUTS)),
    )
