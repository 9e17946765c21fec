"""Inputs of a posed problem, and whether a result of it is right: some rows of two heads, by the float64 oracle.

Checked are the last rows of the first and the last head of one sequence, the longest of packed ones: under causality
they see the most keys. A configuration that is wrong is not timed.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch

from attention.call import Tensors
from attention.campaign.posed import Posed
from attention.features import OPERANDS
from attention.kernels.torch.composed.pieces import with_every_axis
from attention.oracle import reference
from attention.oracle.reference import Comparison
from attention.problem import AttentionProblem
from attention.variant import Config
from attention.verify import oracle
from attention.verify.builds import Build
from attention.verify.inputs import tensors_of
from attention.verify.problems import Case

ROWS = 64
DENSITY = 0.9  # of a mask
NO_BUILD = Build("", (0, 0), "", Config(), frozenset())  # inputs are every build's


@dataclass(frozen=True)
class Part:
    """The rows that are checked, their keys, and what they should be: in float64, and as low precision has it."""

    heads: tuple[int, ...]
    rows: slice
    batch: int
    dtype: str
    exact: torch.Tensor
    low: torch.Tensor

    def judged(self, out: torch.Tensor) -> Comparison:
        """Hold out (B, Hq, Sq, D) against it."""
        got = out[self.batch : self.batch + 1, list(self.heads), self.rows]
        found, exact, low = (each.double().cpu().numpy() for each in (got, self.exact, self.low))
        return reference.compare(found, exact, low, self.dtype)


def inputs(posed: Posed, device: torch.device) -> Tensors:
    """N(0, 1), as a projection writes them: (B, S, H, D) in memory, with NaN around each; a mask for all heads.

    What peers leave open is not asked: every query sees the first key, and keys that are not used are numbers, as a
    cache has them that served before.
    """
    lengths = tuple((length, length) for length in posed.lengths)
    layouts = ("bshd", "bshd", "bshd")
    asked: dict[str, Any] = {"ranges": False} if posed.used else {}
    whole = replace(posed.problem, **asked)
    given = tensors_of(Case(0, 0, NO_BUILD, whole, layouts, "normal", lengths, stretched="qk", density=DENSITY), device)
    if (mask := given.extras.mask) is not None:
        mask[:1, :1, :, 0] = True if mask.dtype == torch.bool else 0.0  # of all heads: they are the same memory
    if not posed.used:
        return given
    used = torch.tensor(posed.used, dtype=torch.int32, device=device)
    return replace(given, extras=given.extras._replace(seqused_k=used))


def part_of(posed: Posed, given: Tensors) -> Part:
    """What the checked rows of a problem should be."""
    problem = posed.problem
    number = max(range(len(posed.lengths)), key=posed.lengths.__getitem__) if posed.lengths else 0
    begin = sum(posed.lengths[:number])
    rows, keys = (posed.lengths[number],) * 2 if posed.lengths else (problem.seq_q, problem.seq_kv)
    seen, batch = min(ROWS, rows), slice(0, 1)
    if problem.causal and problem.alignment == "top_left":
        keys = min(rows, keys)  # no query sees a key behind the last query's
    q, k = slice(begin + rows - seen, begin + rows), slice(begin, begin + keys)
    heads = tuple(sorted({0, problem.heads_q - 1}))
    kv_heads = [head // (problem.heads_q // problem.heads_kv) for head in heads]
    query, key, value = (
        given.query[batch, list(heads), q],
        given.key[batch, kv_heads, k],
        given.value[batch, kv_heads, k],
    )
    operands: dict[str, torch.Tensor | None] = {}
    for operand, tensor in zip(OPERANDS, given.extras, strict=False):
        whole = None if tensor is None else with_every_axis(operand, tensor)
        if whole is not None:
            whole = whole[number : number + 1] if whole.shape[0] > 1 else whole
            whole = whole[:, list(heads)] if whole.shape[1] > 1 else whole
            whole = whole[:, :, -seen:] if whole.shape[2] > 1 else whole
        operands[operand.name] = whole
    asked = _of_rows(problem, len(heads), rows, seen, keys)
    exact, low = (oracle.attention(query, key, value, asked, operands, exact).out for exact in (True, False))
    return Part(heads, q, 0, problem.dtype, exact, low)


def _of_rows(problem: AttentionProblem, heads: int, rows: int, seen: int, keys: int) -> AttentionProblem:
    """The problem of the last `seen` of the rows alone: their diagonal ends bottom-right, as that of a square does.

    Where it began top-left above more queries than keys, it lies as many keys further to the right.
    """
    changes: dict[str, Any] = {"batch": 1, "heads_q": heads, "heads_kv": heads, "seq_q": seen, "seq_kv": keys}
    changes |= {"varlen": False, "tokens_q": 0, "tokens_kv": 0, "alignment": "bottom_right"}
    if problem.causal and problem.alignment == "top_left" and rows > keys:
        changes |= {"causal": False, "window": (-1, rows - keys)}
    return replace(problem, **changes)
