"""A product on m8n8k4, in all four layouts and with both accumulators."""

from typing import Any

import numpy as np

from microbench.compile import Defines
from microbench.emulator import EmulatedDevice
from microbench.verify.differential.attention_case import Floats
from microbench.verify.differential.tensor_cores import ORDERS
from tests.emulated.planted import Planted
from tests.emulated.products import Product

ROWS, COLUMNS, DEPTH = 32, 64, 48

PLANTED = {
    "MISSING_BARRIER": "race: (ld|st).shared .* not ordered after the (write|read)",
    "MISSING_BARRIER_BEFORE_REUSE": "race: st.shared .* not ordered after the read",
    "SWAPPED_LANES": "",
    "SHARED_OUT_OF_BOUNDS": "out of bounds: st.shared",
    "PLAIN_POINTER_OUT": "out of bounds: global access at byte .* in a buffer of 3072 bytes",
}


class TestGemm(Planted):
    name = "gemm_sm70"
    archs, opcodes = ("sm70",), frozenset({"HMMA.884"})
    variants = tuple({"a": a, "b": b, "f16": f16} for a, b in ORDERS for f16 in (False, True))
    bugs = PLANTED

    def defines(self, a: str = "row", b: str = "col", f16: bool = False) -> Defines:
        return ("ORDER_A", a), ("ORDER_B", b), *((("F16_SUMS", 1),) if f16 else ())

    def case(self, seed: int = 0, **_: Any) -> Product:
        """Small integers: sums are exact in f16 as well, so that every wrong element shows."""
        rng = np.random.default_rng(seed)
        return Product(*(rng.integers(-3, 4, (side, DEPTH)).astype(np.float32) for side in (ROWS, COLUMNS)))

    def run(self, device: EmulatedDevice, case: Product, bug: int = 0, **variant: Any) -> Floats:
        by_rows = variant.get("a", "row") == "row", variant.get("b", "col") == "col"
        matrices = (m if as_drawn else m.T for m, as_drawn in zip((case.a, case.b), by_rows, strict=True))
        stored = [device.asarray(np.ascontiguousarray(m, np.float16).view(np.uint16)) for m in matrices]
        c = device.full((ROWS, COLUMNS), np.nan, np.float32)
        self.load(device, **variant)((1, ROWS // 16), (128,), (*stored, c, ROWS, COLUMNS, DEPTH, bug), shared_mem=512)
        return c.astype(np.uint16).view(np.float16).astype(np.float32) if variant.get("f16") else c
