"""Attention in the manner of sm80."""

from typing import Any

from tests.emulated.attention import Attention

PLANTED = {
    "MISSING_WAIT": "a copy that has not been waited for",
    "TOO_FEW_COMMITS": "a copy that has not been waited for",
    "MISSING_BARRIER_AFTER_LOAD": "race: ldmatrix.x4 .* not ordered after the write",
    "MISSING_BARRIER_BEFORE_REUSE": "race: cp.async .* not ordered after the read",
    "SWAPPED_FRAGMENT": "",
    "WRONG_SWIZZLE": "",
    "SHARED_OUT_OF_BOUNDS": "out of bounds: ldmatrix.x4 .* shared offset",
    "GLOBAL_OUT_OF_BOUNDS": "out of bounds: cp.async",
    "DIVERGENT_COLLECTIVE": "mismatched collective",
}


class TestAttention(Attention):
    name = "attention_sm80"
    archs, opcodes = ("sm80", "sm90a"), frozenset({"HMMA", "LDSM", "LDGSTS"})
    random = ({"sequence": 128},)
    bugs = PLANTED

    def smem_bytes(self, head_dim: int, **_: Any) -> int:
        return 5 * 64 * 2 * head_dim
