"""The tensor-core wrappers multiply what their headers say, on the GPU, against NumPy.

Small integers come out exactly, whatever the order of additions: any wrong lane, row, slice or swizzle shows. N(0, 1)
operands show that nothing is rounded on the way in.
"""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from microbench.compile import compile_source
from microbench.device.cuda import CudaDevice
from microbench.shapes.matrix import bits16, wgmma_smem_bytes

pytestmark = pytest.mark.gpu

SOURCE = Path(__file__).with_name("tensor_numerics.cu")
COLUMNS = (8, 16, 32, 64, 96, 128, 192, 256)
K = 64
# 64 products of N(0, 1): sums reach 40, and f32 accumulation that truncates loses at most 64 units of 2^-18 of them.
TOLERANCE = 2.5e-4

Floats = NDArray[np.float32]


def operands(values: str, rows: int, kind: str, seed: int) -> tuple[NDArray[np.uint16], Floats]:
    """`rows` x 64 elements as 16-bit patterns, and as the exact float32 that each pattern stands for."""
    rng = np.random.default_rng(seed)
    shape = (rows, K)
    exact = rng.integers(-8, 9, shape) if values == "integers" else rng.standard_normal(shape)
    bits: NDArray[np.uint16] = bits16(np.ascontiguousarray(exact, dtype=np.float32), kind)
    if kind == "f16":
        return bits, bits.view(np.float16).astype(np.float32)
    return bits, (bits.astype(np.uint32) << 16).view(np.float32)


def product(device: CudaDevice, kernel: str, rows: int, n: int, kind: str, values: str, **defines: int | str) -> None:
    """Run one tile and compare it with NumPy's product in float64."""
    a_bits, a = operands(values, rows, kind, seed=1)
    b_bits, b = operands(values, n, kind, seed=2)
    cubin = compile_source(SOURCE.read_text(), SOURCE.name, device.machine.arch, tuple(defines.items()), kernel=kernel)
    function, cupy = device.load(cubin), device.cupy
    out = cupy.asarray(np.full((rows, n), np.nan, np.float32))
    warps = rows // 16
    smem = wgmma_smem_bytes(1, n) if kernel == "wgmma_tile" else 0
    function((1,), (32 * warps,), (cupy.asarray(a_bits), cupy.asarray(b_bits), out), shared_mem=smem)
    found, expected = out.get(), a.astype(np.float64) @ b.astype(np.float64).T
    assert np.isfinite(found).all()
    if values == "integers":
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("values", ["integers", "normal"])
@pytest.mark.parametrize("kind", ["bf16", "f16"])
def test_mma_sync_multiplies_a_tile(device: CudaDevice, kind: str, values: str) -> None:
    if "mma_m16n8k16" not in device.machine.arch.features:
        pytest.skip(f"{device.machine.name} has no mma.sync m16n8k16")
    product(device, "mma_tile", 16, 8, kind, values, MMA=f"mma_m16n8k16_{kind}")


@pytest.mark.parametrize("values", ["integers", "normal"])
@pytest.mark.parametrize("kind", ["bf16", "f16"])
@pytest.mark.parametrize("source", ["ss", "rs"])
@pytest.mark.parametrize("n", COLUMNS)
def test_wgmma_multiplies_a_tile(device: CudaDevice, n: int, source: str, kind: str, values: str) -> None:
    if "wgmma" not in device.machine.arch.features:
        pytest.skip(f"{device.machine.name} has no wgmma; a Hopper GPU has")
    wrappers = {"WGMMA_SS": f"wgmma_{kind}_ss", "WGMMA_RS": f"wgmma_{kind}_rs"}
    product(device, "wgmma_tile", 64, n, kind, values, N_COLUMNS=n, A_IN_REGISTERS=int(source == "rs"), **wrappers)
