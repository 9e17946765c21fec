"""A GEMM by pairs of blocks on sm100a (cta_group::2)."""

from typing import Any

from microbench.compile import Defines
from tests.emulated.planted import Variant
from tests.emulated.products import PairedProduct

PLANTED = {
    "MISSING_PEER_WAIT": "race: tcgen05.mma.* after the write by a copy|race: cp.async.* after the read by the tensor",
    "COMMIT_TO_ONE_BLOCK": "deadlock: .*mbarrier",
    "ALLOC_BY_ONE_BLOCK": "deadlock: .*tcgen05.alloc",
    "DEALLOC_BY_ONE_BLOCK": "deadlock: .*tcgen05.dealloc|the block ended without tcgen05.dealloc",
    "ALLOC_OF_DIFFERENT_COLUMNS": "the blocks of a pair name different columns",
    "MIXED_GROUPS": "a kernel keeps to one cta_group",
    "INSTRUCTION_OF_ONE_BLOCK": "M is 64, and may be 128 or 256",
    "MISSING_FENCE": "fence: tcgen05.ld .* without tcgen05.fence::after_thread_sync",
    "MISSING_LAST_BARRIER": "race: tcgen05.dealloc",
}


class TestGemm(PairedProduct):
    name, threads = "gemm_pair_sm100a", 192
    archs, opcodes = ("sm100a",), frozenset({"UTCHMMA.2CTA", "UTCBAR.2CTA.MULTICAST", "LDTM.x32"})
    variants: tuple[Variant, ...] = ({"m": 128}, {"m": 256})
    bugs = PLANTED

    def shape(self, m: int = 256, **_: Any) -> tuple[int, int]:
        return 2 * m, m // 2

    def defines(self, m: int = 256, **_: Any) -> Defines:
        return (("M", m),)

    def smem_bytes(self, box: int) -> int:
        return 2 * (box + 64) * 128 + 7 * 8 + 4
