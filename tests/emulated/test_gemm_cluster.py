"""A GEMM by pairs of blocks, multicast and remote releases."""

from typing import Any

from tests.emulated.products import PairedProduct

OVERWRITTEN = "race: cp.async.bulk.tensor load .* not ordered after the read by a collective"

# Half of B in the place of the other half breaks no rule.
PLANTED = {
    "MISSING_INIT_FENCE": "without fence.mbarrier_init",
    "RELEASE_FOR_INIT_FENCE": "without fence.mbarrier_init",
    "INIT_FENCE_AFTER_BARRIER": "not ordered after mbarrier.init",
    "MISSING_INIT_BARRIER": "not ordered after mbarrier.init|no mbarrier was initialised",
    "BLOCK_BARRIER_FOR_INIT": "a bulk copy.* (not ordered after mbarrier.init|no mbarrier was initialised)",
    "MASK_OF_ITSELF": "deadlock: .*mbarrier",
    "MASK_OF_THE_PEER": "deadlock: .*mbarrier",
    "MASK_TOO_WIDE": "the mask 0x7 names a rank of a cluster of 2",
    "TOO_FEW_EXPECTED": "more bytes were copied than expected|race: wgmma .* not ordered after the write by a copy",
    "TOO_MANY_EXPECTED": "deadlock: .*mbarrier",
    "RELEASE_OF_ITSELF_TWICE": OVERWRITTEN,
    "RELEASE_OF_THE_PEER_TWICE": f"{OVERWRITTEN}|more arrivals than the 1 of its phase",
    "ARRIVALS_OF_ONE_BLOCK": f"{OVERWRITTEN}|more arrivals than the 1 of its phase|deadlock: .*mbarrier",
    "EARLY_RELEASE": OVERWRITTEN,
    "MISSING_EMPTY_WAIT": "more arrivals than the 1 of its phase",
    "MISSING_LAST_BARRIER": "ended: the block of rank . ends while thread .* may still use its shared memory",
    "WRONG_HALF": "",
}


class TestGemm(PairedProduct):
    name = "gemm_cluster"
    archs, opcodes = ("sm90a",), frozenset({"UTMALDG.2D.MULTICAST", "UCGABAR_ARV", "UCGABAR_WAIT"})
    bugs = PLANTED

    def shape(self, **_: Any) -> tuple[int, int]:
        return 256, 64

    def smem_bytes(self, box: int) -> int:
        return 2 * (box + 128) * 128 + 4 * 8
