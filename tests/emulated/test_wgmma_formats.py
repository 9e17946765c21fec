"""wgmma on tf32, fp8 and 8-bit integers: every N, both sources, every swizzle."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from microbench.emulator import MODES, EmulatedDevice, Mode
from microbench.errors import BuildError
from microbench.verify.differential import layouts
from microbench.verify.differential.number_formats import (
    SUMS,
    WGMMA,
    Wrapper,
    bits_of,
    columns_of,
    integer_sum,
    registers,
    values_of,
)
from tests.emulated.formats import Image, run_wgmma

Bits = NDArray[Any]


def drawn(rng: np.random.Generator, wrapper: Wrapper, columns: int) -> tuple[Bits, Bits, NDArray[Any]]:
    """a (64, k) and b (columns, k) as bits, c (64, columns): any integers of 8 bits; floats that sum exactly."""
    sides = (64, wrapper.k), (columns, wrapper.k)
    if wrapper.sums == "s32":
        a, b = (rng.integers(0, 256, side, np.uint8) for side in sides)
        return a, b, rng.integers(-(2**31), 2**31, (64, columns)).astype(np.int32)
    a, b = (bits_of(rng.integers(-4, 5, side), kind) for side, kind in zip(sides, (wrapper.a, wrapper.b), strict=True))
    return a, b, rng.integers(-100, 100, (64, columns)).astype(SUMS[wrapper.sums])


def expected_of(wrapper: Wrapper, a: Bits, b: Bits, c: NDArray[Any]) -> NDArray[Any]:
    x, y = values_of(a, wrapper.a), values_of(b, wrapper.b).T
    return integer_sum(x, y, c, wrapper.saturates) if wrapper.sums == "s32" else x @ y + c


def image_of(matrix: Bits, swizzle: int) -> Image:
    """A K-major `matrix`, (extent, 32 bytes)."""
    leading, stride = (16, 8 * swizzle) if swizzle else (128, 256)
    rows = np.ascontiguousarray(matrix).view(np.uint8)
    i, byte = np.indices(rows.shape)
    at = layouts.swizzled(layouts.k_major_offset(i, byte, swizzle, leading, stride), swizzle)
    image = np.full((int(at.max()) + 1024) // 1024 * 1024, 0x7F, np.uint8)
    image[at] = rows
    return Image(image.view(np.uint32), leading, stride)


def multiplied(
    device: EmulatedDevice, wrapper: Wrapper, a: Bits, b: Bits, c: NDArray[Any], swizzle: int, from_registers: bool
) -> NDArray[Any]:
    places = layouts.wgmma_accumulator(len(b))
    d = np.ascontiguousarray(c[places])
    fragments = registers(a[layouts.wgmma_a(wrapper.k, wrapper.per_word)])
    source = fragments if from_registers else image_of(a, swizzle)
    run_wgmma(device, wrapper, source, image_of(b, swizzle), d, swizzle)
    found = np.empty_like(c)
    found[places] = d
    return found


@pytest.mark.parametrize("from_registers", [False, True], ids=["ss", "rs"])
@pytest.mark.parametrize("wrapper", WGMMA, ids=lambda wrapper: wrapper.name)
def test_every_n_multiplies(wrapper: Wrapper, from_registers: bool) -> None:
    for columns in columns_of(wrapper):
        a, b, c = drawn(np.random.default_rng(columns), wrapper, columns)
        found = multiplied(EmulatedDevice("lazy"), wrapper, a, b, c, 128, from_registers)
        np.testing.assert_array_equal(found, expected_of(wrapper, a, b, c))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
def test_every_swizzle_is_read_in_every_mode(swizzle: int, mode: Mode) -> None:
    for wrapper in WGMMA:
        a, b, c = drawn(np.random.default_rng(swizzle), wrapper, 64)
        for from_registers in (False, True):
            found = multiplied(EmulatedDevice(mode), wrapper, a, b, c, swizzle, from_registers)
            np.testing.assert_array_equal(found, expected_of(wrapper, a, b, c))


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
    assert (out[0] < -(2**30)).all()
    assert (out[1] == 0).all()


@pytest.mark.parametrize(("header", "call"), [("wgmma_int8", "wgmma_s8_ss"), ("wgmma_tf32", "wgmma_tf32_ss")])
def test_an_n_that_the_instruction_lacks_does_not_build(header: str, call: str) -> None:
    kind, count = ("int", 20) if "s8" in call else ("float", 130)
    source = (
        f'#include "ptx/{header}.cuh"\nextern "C" __global__ void k() '
        f"{{ {kind} d[{count}] = {{}}; ptx::{call}(d, 0ull, 0ull, 1); }}"
    )
    with pytest.raises(BuildError, match="has no such N"):
        EmulatedDevice().load(source, "k.cu", kernel="k")
