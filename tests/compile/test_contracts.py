"""Contracts on real compiles: the right kernel passes, one op removed, one added and two fused fail."""

from typing import Literal

import pytest

from microbench import sass
from microbench.compile import compile_source
from microbench.machine.arch import by_name
from microbench.probe import OpCount, Overhead, SassContract

Region = Literal["straight", "loop"]
ARCHS = ("sm70", "sm80", "sm90a", "sm100a")
COUNTER = (Overhead(("IADD3", "UIADD3", "VIADD", "ISETP", "UISETP"), 2, 2), Overhead(("NOP",), 0, 1))
N = 8

# CHAINS accumulators in turn, N ops in a row; in a loop where TRIPS is defined. OP is one multiply and one add in turn.
KERNEL = """
#include "ptx/clock.cuh"
extern "C" __global__ void probe(float* x, long long* cycles, int trips) {
  float v[CHAINS], a = x[100], b = x[101];
  for (int i = 0; i < CHAINS; i++) v[i] = x[threadIdx.x + 32 * i];
  for (int i = 0; i < CHAINS; i++) ptx::settle(v[i]);
  ptx::settle(a, b, trips);
  long long start = ptx::clock64();
#if LOOP
#pragma unroll 1
  for (int t = 0; t < trips; t++)
#endif
  {
#pragma unroll
    for (int i = 0; i < N; i++) {
#if FUSED
      if (i % 2) v[i / 2 % CHAINS] = v[i / 2 % CHAINS] * a + b;
#else
      asm volatile("add.rn.f32 %0, %0, %1;" : "+f"(v[i % CHAINS]) : "f"(a));
#endif
    }
  }
  for (int i = 0; FUSED && i < CHAINS; i++) asm volatile("" : "+f"(v[i])::"memory");
  long long stop = ptx::clock64();
  for (int i = 0; i < CHAINS; i++) x[threadIdx.x + 32 * i] = v[i];
  cycles[threadIdx.x] = stop - start;
}
"""


def violations(
    arch: str, region: Region, chains: int, distance: int | None, n: int = N, fused: bool = False
) -> tuple[str, ...]:
    defines = (("CHAINS", chains), ("N", n), ("LOOP", int(region == "loop")), ("FUSED", int(fused)))
    cubin = compile_source(KERNEL, "probe.cu", arch, defines, kernel="probe")
    overhead = COUNTER if region == "loop" else ()
    contract = SassContract((OpCount("FADD", N),), region, distance, overhead)
    return sass.check(contract, cubin.instructions(), by_name(arch), cubin.resources)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("region", ["straight", "loop"])
@pytest.mark.parametrize(("chains", "distance"), [(1, 1), (4, 4), (4, None)])
def test_the_right_kernel_passes_and_every_other_fails(
    arch: str, region: Region, chains: int, distance: int | None
) -> None:
    assert violations(arch, region, chains, distance) == ()
    assert f"{N - 1} FADD where {N} are declared" in violations(arch, region, chains, distance, N - 1)
    assert f"{N + 1} FADD where {N} are declared" in violations(arch, region, chains, distance, N + 1)
    assert violations(arch, region, chains, distance, fused=True)
