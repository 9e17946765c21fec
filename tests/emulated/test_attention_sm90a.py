"""Attention in the manner of sm90a."""

from typing import Any

from microbench.emulator import TensorMap
from tests.emulated.attention import Attention

# A result that was not waited for breaks no rule either: accumulators hold NaN until then. A wrong layout that
# reaches into the next stage is a race.
PLANTED = {
    "MISSING_INIT_FENCE": "proxy: a bulk copy completes on the mbarrier .* without fence.mbarrier_init",
    "MISSING_INIT_BARRIER": "not ordered after mbarrier.init|no mbarrier was initialised",
    "MISSING_EMPTY_WAIT": "more arrivals than the 1 of its phase|deadlock: .*mbarrier",
    "MISSING_FULL_WAIT": "race: wgmma by a collective of warp .* not ordered after the write by a copy",
    "WRONG_PHASE": "race: wgmma .* not ordered after the write by a copy|deadlock: .*mbarrier",
    "TOO_FEW_EXPECTED": "more bytes were copied than expected|race: wgmma .* the write by a copy",
    "TOO_MANY_EXPECTED": "deadlock: .*mbarrier",
    "TOO_FEW_ARRIVALS": "deadlock: .*mbarrier",
    "EARLY_RELEASE": "race: cp.async.bulk.tensor load .* not ordered after the read by a collective",
    "MISSING_WGMMA_WAIT": "",
    "MISSING_WGMMA_FENCE": "without wgmma.fence",
    "TOO_FEW_COMMITS": "",
    "DESCRIPTOR_OFF_BY_ONE": "race: wgmma",
    "WRONG_SWIZZLE": "wgmma: .* starts at row 1 of the eight of a swizzle",
    "WRONG_MAJOR": "race: wgmma",
    "MISSING_PROXY_FENCE": "proxy: .* through the async proxy, but thread .* without fence.proxy.async",
    "MISSING_STORE_BARRIER": "race: cp.async.bulk.tensor store .* not ordered after the write",
    "MISSING_STORE_WAIT": "before it waited for its bulk stores",
    "TILE_OUT_OF_BOUNDS": "out of bounds: cp.async.bulk.tensor",
}


class TestAttention(Attention):
    name, threads = "attention_sm90a", 256
    archs, opcodes = ("sm90a",), frozenset({"HGMMA", "UTMALDG", "UTMASTG", "SYNCS", "USETMAXREG"})
    bugs = PLANTED

    def smem_bytes(self, head_dim: int, **_: Any) -> int:
        return 5 * 64 * 2 * head_dim + 64 * head_dim * 4 + 5 * 8

    def tensors(self, inputs: list[Any], out: Any) -> tuple[Any, ...]:
        maps = [TensorMap(each, (64, 64), "bf16", swizzle=128).emulated() for each in inputs]
        return (*maps, TensorMap(out, (64, out.shape[1]), "f32").emulated())
