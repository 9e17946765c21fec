"""What a call may bring beside query, key and value: the tensors of its features, alike for every variant."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Extras:
    """Tensors on the device of the query; None where the problem has no such feature.

    mask          (B, Hq, Sq, Skv), expanded (strides may be 0): bool, True may be seen; or floats added to the scores
    alibi         (B, Hq), expanded: slopes, of lse's dtype; query i and key j get -slope*|i + Skv - Sq - j|
    sinks         (Hq,), contiguous, of lse's dtype: one more logit in the denominator of each query, and in lse
    cu_seqlens_q  (B + 1,), int32: the rows where each sequence begins in packed queries (1, Hq, Tq, D), and their end
    cu_seqlens_k  (B + 1,), int32: likewise for keys and values (1, Hkv, Tkv, D)
    """

    mask: "torch.Tensor | None" = None
    alibi: "torch.Tensor | None" = None
    sinks: "torch.Tensor | None" = None
    cu_seqlens_q: "torch.Tensor | None" = None
    cu_seqlens_k: "torch.Tensor | None" = None


NO_EXTRAS = Extras()
