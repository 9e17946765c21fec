"""A swizzled matrix of the tensor cores starts where its pattern does: the base offset of another start is not 0."""

import numpy as np
import pytest

from microbench.emulator import EmulatedDevice
from microbench.errors import DeviceError
from tests.emulated.test_tcgen05_rules import body
from tests.emulated.test_tcgen05_rules import run as run_tcgen05

SPANS = (128, 64, 32)
WGMMA = """
#include "ptx/memory.cuh"
#include "ptx/wgmma_int8.cuh"
extern "C" __global__ void k(int* out) {
  const unsigned tile = ptx::shared_base();
  for (int i = threadIdx.x; i < 4096; i += 128) ptx::store_shared(tile + 4 * i, 0);
  ptx::fence_proxy_async();
  __syncthreads();
  int d[4] = {};
  const unsigned long long at = ptx::matrix_descriptor(tile + START, 16, 8 * SPAN, SPAN);
  ptx::wgmma_fence();
  ptx::wgmma_s8_ss(d, at, at, 1);
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
  out[threadIdx.x] = d[0];
}"""


def multiply_by_tcgen05(start: int, span: int) -> None:
    matrix = f"ptx::tcgen05_matrix(tile + {start}, 16, {8 * span}, {span})"
    product = f"ptx::tcgen05_mma_f16_ss(memory, {matrix}, ones, kF16, 0); ptx::tcgen05_commit(bar);"
    run_tcgen05(body(f"if (threadIdx.x == 0) {{ {product} }}", "ptx::mbarrier_wait(bar, 0);"), "lazy", smem_bytes=32768)


def multiply_by_wgmma(start: int, span: int) -> None:
    source = WGMMA.replace("START", str(start)).replace("SPAN", str(span))
    device = EmulatedDevice("lazy")
    device.load(source, "k.cu", kernel="k")((1,), (128,), (np.zeros(128, np.int32),), shared_mem=32768)


@pytest.mark.parametrize("multiply", [multiply_by_tcgen05, multiply_by_wgmma])
@pytest.mark.parametrize("span", SPANS)
def test_a_matrix_starts_in_the_first_row_of_its_swizzle(multiply, span: int) -> None:  # type: ignore[no-untyped-def]
    multiply(8 * span + span - 16, span)
    with pytest.raises(DeviceError, match=f"row 7 of the eight of a swizzle.*align its tile to {8 * span} bytes"):
        multiply(15 * span, span)
