"""What a backward kernel is given, what is asked of it, and what it gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from attention.call import Extras
from attention.problem import AttentionProblem

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Forwarded:
    """What the forward was given and gave: tensors (B, H, S, D) or packed (1, H, T, D), lse (B, H, S) or (1, H, T)."""

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    out: torch.Tensor
    lse: torch.Tensor
    problem: AttentionProblem
    extras: Extras


@dataclass(frozen=True)
class Wanted:
    """Which gradients beside those of query, key and value, and how.

    operands        of each operand of a feature, whether its gradient is wanted
    deterministic   added in one order
    lse             a gradient of lse comes in beside that of out
    twice           autograd follows the backward itself (create_graph)
    nothing_seen    there are no queries or no keys, which a problem cannot say
    """

    operands: tuple[bool, ...] = ()
    deterministic: bool = False
    lse: bool = False
    twice: bool = False
    nothing_seen: bool = False


@dataclass(frozen=True)
class Gradients:
    """Laid out as `torch.empty_like` of the inputs; None where none was wanted of an operand of a feature."""

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    operands: Extras
