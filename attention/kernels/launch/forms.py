"""How callers hold tensors that kernels of ours read as (B, H, S, D): views both ways, of which nothing is copied."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

View = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, eq=False)
class Form:
    """to_kernel: query, key or value as kernels read it. out, lse: a result of a kernel as the caller gets it."""

    to_kernel: View
    out: View
    lse: View = lambda lse: lse


def _turned(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.transpose(1, 2)


HEADS_FIRST = Form(lambda tensor: tensor, lambda out: out)
ROWS_OF_HEADS = Form(_turned, _turned)  # (B, S, H, D)
PACKED = Form(  # (T, H, D), all sequences as one batch
    lambda tensor: tensor.transpose(0, 1)[None], lambda out: out[0].transpose(0, 1), lambda lse: lse[0]
)
