"""wgmma on tf32, fp8 and 8-bit integers: every N, both sources; swizzles and modes: test_differential.py."""

import numpy as np
import pytest

from microbench.emulator import EmulatedDevice
from microbench.errors import BuildError
from microbench.verify.differential import formats
from microbench.verify.differential.case import Values
from microbench.verify.differential.emulated import results
from microbench.verify.differential.number_formats import SOURCE, WGMMA, Wrapper, columns_of, wgmma_defines


def require(wrapper: Wrapper, columns: int, from_registers: bool) -> None:
    """A product of any integers of 8 bits, or of floats that sum exactly, is NumPy's."""
    values: Values = "bits" if wrapper.sums == "s32" else "integers"
    (launch,) = formats.wgmma(wrapper, columns, from_registers, 128, values, range(1))
    device = EmulatedDevice("lazy")
    kernel = device.load(SOURCE.read_text(), SOURCE.name, kernel="wgmma", defines=wgmma_defines(wrapper))
    np.testing.assert_array_equal(results(device, kernel, [launch]), launch.expected[0].ravel())


@pytest.mark.parametrize("from_registers", [False, True], ids=["ss", "rs"])
@pytest.mark.parametrize("wrapper", WGMMA, ids=lambda wrapper: wrapper.name)
def test_every_n_multiplies(wrapper: Wrapper, from_registers: bool) -> None:
    for columns in columns_of(wrapper):
        require(wrapper, columns, from_registers)


def test_integers_that_were_not_waited_for_are_absurd() -> None:
    source = """
#include "ptx/memory.cuh"
#include "ptx/wgmma_int8.cuh"
extern "C" __global__ void early(int* out) {
  const unsigned tile = ptx::shared_base();
  for (int i = threadIdx.x; i < 1024; i += 128) ptx::store_shared(tile + 4 * i, 0);
  ptx::fence_proxy_async();
  __syncthreads();
  int d[4] = {};
  const unsigned long long at = ptx::matrix_descriptor(tile, 128, 256, 0);
  ptx::wgmma_fence();
  ptx::wgmma_s8_ss(d, at, at, 1);
  ptx::wgmma_commit();
  out[threadIdx.x] = d[0];
  ptx::wgmma_wait<0>();
  out[128 + threadIdx.x] = d[0];
}"""
    out = np.ones((2, 128), np.int32)
    EmulatedDevice("lazy").load(source, "early.cu", kernel="early")((1,), (128,), (out,), shared_mem=4096)
    assert (out[0] < -(2**30)).all() and (out[1] == 0).all()


@pytest.mark.parametrize(("header", "call"), [("wgmma_int8", "wgmma_s8_ss"), ("wgmma_tf32", "wgmma_tf32_ss")])
def test_an_n_that_the_instruction_lacks_does_not_build(header: str, call: str) -> None:
    kind, count = ("int", 20) if "s8" in call else ("float", 130)
    source = (
        f'#include "ptx/{header}.cuh"\nextern "C" __global__ void k() '
        f"{{ {kind} d[{count}] = {{}}; ptx::{call}(d, 0ull, 0ull, 1); }}"
    )
    with pytest.raises(BuildError, match="has no such N"):
        EmulatedDevice().load(source, "k.cu", kernel="k")
