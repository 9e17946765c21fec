"""A product of 8-bit floats in the manner of sm100a: TMA, tcgen05.mma kind::f8f6f4, tensor memory."""

import numpy as np
import pytest

from microbench.compile import compile_source
from microbench.emulator import MODES, EmulatedDevice, Mode, TensorMap
from microbench.verify.differential.number_formats import dtypes
from tests.emulated.sources import source_of

SOURCE, NAME = source_of("gemm_sm100a.cu")
KERNEL = "gemm_sm100a"
SMEM_BYTES = 6 * 128 * 128 + 7 * 8 + 4


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
def test_a_product_is_that_of_its_rounded_operands(kind: str, mode: Mode) -> None:
    rows, columns, depth = 128, 256, 640
    rng = np.random.default_rng(depth)
    a, b = (rng.standard_normal((side, depth)).astype(dtypes()[kind]) for side in (rows, columns))
    device = EmulatedDevice(mode)
    c = device.full((rows, columns), np.nan, np.float32)
    operands = [device.asarray(each.view(np.uint8)) for each in (a, b)]
    maps = [TensorMap(each, (128, 128), "u8", swizzle=128).emulated() for each in operands]
    kernel = device.load(SOURCE, NAME, kernel=KERNEL, defines=(("ELEMENT", kind),))
    kernel((columns // 128, rows // 128), (192,), (*maps, c, columns, depth), shared_mem=SMEM_BYTES)
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    # Products are exact in f32; the sum of 640 of them, each about 1, is off by a few units of 2^-19.
    np.testing.assert_allclose(c, exact, rtol=0, atol=2e-4)


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
def test_the_same_source_compiles_for_its_gpu(kind: str) -> None:
    cubin = compile_source(SOURCE, NAME, "sm100a", (("ELEMENT", kind),), kernel=KERNEL)
    opcodes = {instruction.opcode.split(".")[0] for instruction in cubin.instructions()}
    assert {"UTCQMMA", "UTCBAR", "LDTM", "UTMALDG", "SYNCS"} <= opcodes
    assert cubin.resources.spill_store_bytes == 0
