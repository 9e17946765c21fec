"""What tcgen05 does not allow, each in the smallest kernel that does it; and what it does allow, which stays silent."""

import re

import numpy as np
import pytest

from microbench.emulator import MODES, EmulatedDevice, Mode
from microbench.errors import DeviceError

HEAD = """
#include "ptx/memory.cuh"
#include "ptx/tcgen05.cuh"
extern "C" __global__ void k(unsigned* out) {
  const unsigned slot = ptx::shared_base(), bar = slot + 16, tile = slot + 1024, warp = threadIdx.x / 32;
  if (threadIdx.x == 0) { ptx::mbarrier_init(bar, 1); ptx::mbarrier_init(bar + 8, 32); ptx::fence_mbarrier_init(); }
  constexpr unsigned kF16 = ptx::tcgen05_instruction(ptx::Operand::f16, ptx::Operand::f16, 128, 32);
  for (int i = threadIdx.x; i < 2048; i += blockDim.x) ptx::store_shared(tile + 4 * i, 0x3C003C00);
  ptx::fence_proxy_async();
  const unsigned long long ones = ptx::tcgen05_matrix(tile, 128, 256, 0);
  auto alloc = [&](unsigned at, unsigned columns) { ptx::tcgen05_alloc(slot + at, columns); };
  unsigned r[1] = {7};
"""
# Warp 0 allocates 64 columns, and all know where.
OPEN = "if (warp == 0) alloc(0, 64); __syncthreads(); const unsigned memory = ptx::load_shared(slot);"
CLOSE = "__syncthreads(); if (warp == 0) ptx::tcgen05_dealloc(memory, 64);"
MINE = "memory + (warp * 32 << 16)"
STORE = f"ptx::tcgen05_st_32x32b({MINE}, r); ptx::tcgen05_wait_st();"
LOAD = f"ptx::tcgen05_ld_32x32b(r, {MINE}); ptx::tcgen05_wait_ld();"
MULTIPLY = "if (threadIdx.x == 0) { ptx::tcgen05_mma_f16_ss(memory, ones, ones, kF16, 0); ptx::tcgen05_commit(bar); }"
WAIT = "ptx::mbarrier_wait(bar, 0); ptx::tcgen05_fence_after();"


def run(body: str, mode: Mode, threads: int = 128, smem_bytes: int = 16384) -> np.ndarray:  # type: ignore[type-arg]
    device = EmulatedDevice(mode)
    out = np.zeros(threads, np.uint32)
    source = f"{HEAD} {body} out[threadIdx.x] = r[0]; }}"
    device.load(source, "k.cu", kernel="k")((1,), (threads,), (out,), shared_mem=smem_bytes)
    return out


def body(*steps: str) -> str:
    return " ".join((OPEN, *steps, CLOSE))


REFUSED = {
    "columns that are no power of two": ("if (warp == 0) alloc(0, 96);", "of 96 columns: a power of two from 32"),
    "too few columns": ("if (warp == 0) alloc(0, 16);", "of 16 columns"),
    "half a warp allocates": ("if (threadIdx.x < 16) alloc(0, 32);", "deadlock: .*warp 0 at tcgen05.alloc x16"),
    "no columns left": ("if (warp == 0) { alloc(0, 512); alloc(4, 32); }", "deadlock: .*at tcgen05.alloc"),
    "too few given back": (
        f"{OPEN} __syncthreads(); if (warp == 0) ptx::tcgen05_dealloc(memory, 32);",
        "no allocation",
    ),
    "given back twice": (f"{body()} if (warp == 0) ptx::tcgen05_dealloc(memory, 64);", "no allocation"),
    "pairs and single blocks": ("if (warp == 0) { alloc(0, 64); ptx::tcgen05_relinquish<2>(); }", "one cta_group"),
    "a store without its wait": (body(STORE.partition(";")[0] + ";"), "ended before tcgen05.wait::st|dealloc of"),
    "a load behind a store": (body(STORE.partition(";")[0] + ";", LOAD), "race: tcgen05.ld .* not waited for"),
    "another thread's store": (
        body(STORE, "__syncthreads();", MULTIPLY, WAIT, LOAD),
        "fence: tcgen05.mma.* after tcgen05.st .* not execute tcgen05.fence::before_thread_sync",
    ),
    "a load before the product": (body(MULTIPLY, LOAD, WAIT), "race: tcgen05.(ld|mma)"),
    "no commit": (
        body("if (threadIdx.x == 0) ptx::tcgen05_mma_f16_ss(memory, ones, ones, kF16, 0);"),
        "no tcgen05.commit follows|race: tcgen05.dealloc",
    ),
    "a product beyond the allocation": (
        body("if (threadIdx.x == 0) ptx::tcgen05_mma_f16_ss(memory + 48, ones, ones, kF16, 0);"),
        "out of bounds: tcgen05.mma.* of tensor memory",
    ),
    "A over D": (
        body("if (threadIdx.x == 0) ptx::tcgen05_mma_f16_ts(memory, memory + 16, ones, kF16, 0);"),
        "A overlaps D",
    ),
    "rows that no product has": (
        body("if (threadIdx.x == 0) ptx::tcgen05_mma_f16_ss(memory, ones, ones, kF16 - (2u << 24), 0);"),
        "M is 96",
    ),
    "columns that no product has": (
        body("if (threadIdx.x == 0) ptx::tcgen05_mma_f16_ss(memory, ones, ones, kF16 - (3u << 17), 0);"),
        "N is 8",
    ),
    "lanes of one warp that differ": (
        body(f"ptx::tcgen05_ld_32x32b(r, {MINE} + threadIdx.x % 2);"),
        "the lanes of a warp give different addresses",
    ),
    "a half beyond the allocation": (
        body(f"ptx::tcgen05_st_16x32bx2<64>({MINE}, r); ptx::tcgen05_wait_st();"),
        "out of bounds: tcgen05.st at .* of tensor memory, not all of which are allocated",
    ),
    "a load of the other half behind its store": (
        body(f"ptx::tcgen05_st_16x32bx2<8>({MINE}, r); ptx::tcgen05_ld_32x32b(r, {MINE} + 8); ptx::tcgen05_wait_ld();"),
        "race: tcgen05.ld .* not waited for",
    ),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", REFUSED)
def test_what_the_isa_forbids_is_reported(case: str, mode: Mode) -> None:
    steps, reason = REFUSED[case]
    with pytest.raises(DeviceError) as reported:
        run(steps, mode)
    assert re.search(reason, str(reported.value)), reported.value


FENCED = "ptx::tcgen05_fence_before(); __syncthreads(); ptx::tcgen05_fence_after();"
ALLOWED = {
    "a store, then a load of the same thread": (body(STORE, LOAD), 7),
    "a product, a commit, a load": (body(MULTIPLY, WAIT, LOAD), 0x41800000),  # 16 times 1 * 1
    "a store, a product over it, a load": (body(STORE, FENCED, MULTIPLY, WAIT, LOAD), 0x41800000),
    "a fence of who waited for the commit, for the rest": (
        body(MULTIPLY, "if (warp == 0) ptx::mbarrier_wait(bar, 0);", FENCED, LOAD),
        0x41800000,
    ),
    "a copy and a product of another thread, in the order of their issue": (
        body(
            "if (threadIdx.x == 0) ptx::tcgen05_cp_128x256b(memory + 32, ones);",
            FENCED,
            "if (threadIdx.x == 32) { ptx::tcgen05_mma_f16_ts(memory, memory + 32, ones, kF16, 0);"
            "ptx::tcgen05_commit(bar); }",
            "if (threadIdx.x == 0) ptx::tcgen05_commit(bar + 8);",
            "if (warp == 0 && threadIdx.x) ptx::mbarrier_arrive(bar + 8);",
            "ptx::mbarrier_wait(bar + 8, 0);",
            WAIT,
            LOAD,
        ),
        0x41800000,
    ),
    "a load between the halves of a store": (
        body(
            f"ptx::tcgen05_st_32x32b({MINE} + 1, r); ptx::tcgen05_wait_st(); ptx::tcgen05_st_16x32bx2<2>({MINE}, r);"
            f"ptx::tcgen05_ld_32x32b(r, {MINE} + 1); ptx::tcgen05_wait_ld(); ptx::tcgen05_wait_st();"
        ),
        7,
    ),
    "an allocation that waits for another warp's": (
        "if (warp == 0) { alloc(0, 512); ptx::tcgen05_dealloc(ptx::load_shared(slot), 512); }"
        "if (warp == 1) { alloc(4, 512); ptx::tcgen05_dealloc(ptx::load_shared(slot + 4), 512); }",
        7,
    ),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", ALLOWED)
def test_what_the_isa_allows_is_right_and_silent(case: str, mode: Mode) -> None:
    steps, word = ALLOWED[case]
    np.testing.assert_array_equal(run(steps, mode), word)


def test_an_allocation_may_begin_anywhere() -> None:
    source = f"{HEAD} {OPEN} out[threadIdx.x] = memory; {CLOSE} }}"
    found = set()
    for seed in range(8):
        device = EmulatedDevice("random", seed)
        out = np.zeros(128, np.uint32)
        device.load(source, "k.cu", kernel="k")((1,), (128,), (out,), shared_mem=16384)
        found.add(int(out[0]))
    assert len(found) > 1 and all(place % 64 == 0 for place in found)
