"""A GEMM by pairs of blocks on sm100a (cta_group::2)."""

from typing import Any

import numpy as np

from microbench.compile import Defines
from microbench.emulator import EmulatedDevice, TensorMap
from microbench.verify.differential.attention_case import Floats, bf16_bits
from tests.emulated.planted import Planted, Variant
from tests.emulated.products import Product

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


DEPTH, COLUMNS = 5 * 64, 256


class TestGemm(Planted):
    """A cluster of two blocks; each block makes m / 2 rows and 128 columns."""

    name = "gemm_pair_sm100a"
    archs, opcodes = ("sm100a",), frozenset({"UTCHMMA.2CTA", "UTCBAR.2CTA.MULTICAST", "LDTM.x32"})
    variants: tuple[Variant, ...] = ({"m": 128}, {"m": 256})
    bugs = PLANTED

    def defines(self, m: int = 256, **_: Any) -> Defines:
        return (("M", m),)

    def case(self, seed: int = 0, m: int = 256, **_: Any) -> Product:
        rng = np.random.default_rng(seed)
        return Product(*(rng.integers(-3, 4, (size, DEPTH)).astype(np.float32) for size in (2 * m, COLUMNS)))

    def run(self, device: EmulatedDevice, case: Product, bug: int = 0, m: int = 256, **_: Any) -> Floats:
        c = device.full((2 * m, COLUMNS), np.nan, np.float32)
        inputs = [device.asarray(bf16_bits(each)) for each in (case.a, case.b)]
        boxes = zip(inputs, (m // 2, 64), strict=True)
        maps = [TensorMap(each, (side, 64), "bf16", swizzle=128).emulated() for each, side in boxes]
        smem_bytes = 2 * (m // 2 + 64) * 128 + 7 * 8 + 4
        self.load(device, m=m)((4, COLUMNS // 128), (192,), (*maps, c, DEPTH, COLUMNS, bug), smem_bytes, cluster=(2,))
        return c
