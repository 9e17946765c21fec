"""Attention in the manner of sm70."""

from typing import Any

from tests.emulated.attention import Attention

PLANTED = {
    "MISSING_BARRIER_AFTER_STORE": "race: (ld|st).shared .* not ordered after the (write|read)",
    "MISSING_BARRIER_BEFORE_REUSE": "race: st.shared .* not ordered after the read",
    "MISSING_WARP_BARRIER": "race: (ld|st).shared .* not ordered after the (write|read)",
    "HALF_OF_A_ROW": "",
    "SWAPPED_FRAGMENT": "",
    "SHARED_OUT_OF_BOUNDS": "out of bounds: st.shared",
    "GLOBAL_OUT_OF_BOUNDS": "out of bounds",
}


class TestAttention(Attention):
    name, kind = "attention_sm70", "f16"
    archs, opcodes = ("sm70",), frozenset({"HMMA.884.F32.F32"})
    random, seeds = ({"sequence": 128},), 4
    bugs = PLANTED

    def smem_bytes(self, head_dim: int, **_: Any) -> int:
        return 3 * 64 * (2 * head_dim + 16) + 64 * (2 * 64 + 16)
