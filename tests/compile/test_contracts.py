"""Contracts on real compiles: the right kernel passes, one op removed, one added and two fused fail."""

import pytest

from microbench import sass
from microbench.compile import compile_source
from microbench.machine.arch import by_name
from microbench.probe import OpCount, SassContract

ARCHS = ("sm70", "sm80", "sm90a", "sm100a")
COUNTER = ("IADD3", "UIADD3", "VIADD", "ISETP", "UISETP", "NOP")
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


def violations(arch: str, region: str, chains: int, distance: int, n: int = N, fused: bool = False) -> tuple[str, ...]:
    defines = (("CHAINS", chains), ("N", n), ("LOOP", int(region == "loop")), ("FUSED", int(fused)))
    cubin = compile_source(KERNEL, "probe.cu", arch, defines, kernel="probe")
    overhead = COUNTER if region == "loop" else ()
    contract = SassContract((OpCount("FADD", N),), region, distance, overhead, 4 if overhead else 0)
    return sass.check(contract, cubin.instructions(), by_name(arch), cubin.resources)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("region", ["straight", "loop"])
@pytest.mark.parametrize(("chains", "distance"), [(1, 1), (4, 4), (4, 0)])
def test_the_right_kernel_passes_and_every_other_fails(arch: str, region: str, chains: int, distance: int) -> None:
    assert violations(arch, region, chains, distance) == ()
    assert f"{N - 1} FADD where {N} are declared" in violations(arch, region, chains, distance, N - 1)
    assert f"{N + 1} FADD where {N} are declared" in violations(arch, region, chains, distance, N + 1)
    assert violations(arch, region, chains, distance, fused=True)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("region", ["straight", "loop"])
def test_a_serial_chain_where_four_are_declared_fails_and_the_reverse(arch: str, region: str) -> None:
    assert any("reads the op 1 before it, not 4" in text for text in violations(arch, region, 1, 4))
    assert violations(arch, region, 4, 1)


POINTER_CHASE = """
#include "ptx/clock.cuh"
extern "C" __global__ void chase(unsigned long long* start_at, long long* out) {
  unsigned long long at = start_at[threadIdx.x];
  ptx::settle(at);
  long long start = ptx::clock64();
#pragma unroll
  for (int i = 0; i < 16; i++) asm volatile("ld.global.ca.u64 %0, [%0];" : "+l"(at)::"memory");
  ptx::settle(at);
  long long stop = ptx::clock64();
  out[0] = stop - start;
  out[1] = at;
}
"""


@pytest.mark.parametrize("arch", ARCHS)
def test_a_pointer_chase_may_wait_for_its_own_loads(arch: str) -> None:
    cubin = compile_source(POINTER_CHASE, "chase.cu", arch, kernel="chase")
    contract = SassContract((OpCount("LDG.64", 16),), distance=1, overhead=("ISETP", "PMTRIG"), overhead_max=3)
    assert sass.check(contract, cubin.instructions(), by_name(arch), cubin.resources) == ()


@pytest.mark.parametrize("arch", ARCHS)
def test_a_loop_that_ptxas_unrolled_by_itself_fails(arch: str) -> None:
    source = """extern "C" __global__ void sum(const float* x, float* out, int n) {
      float s = 0; for (int i = threadIdx.x; i < n; i += 256) s += x[i]; out[threadIdx.x] = s; }"""
    cubin = compile_source(source, "sum.cu", arch, kernel="sum")
    contract = SassContract((OpCount("LDG", 1),), "loop", overhead=("FADD", *COUNTER), overhead_max=9)
    assert "loops hold LDG" in sass.check(contract, cubin.instructions(), by_name(arch), cubin.resources)[0]


@pytest.mark.parametrize("arch", ["sm90a", "sm100a"])
def test_two_chained_maxima_that_ptxas_fuses_fail(arch: str) -> None:
    source = """#include "ptx/clock.cuh"
    extern "C" __global__ void maxima(int* x, long long* cycles) {
      int a = x[threadIdx.x], b = x[threadIdx.x + 32], c = x[threadIdx.x + 64];
      ptx::settle(a, b, c);
      long long start = ptx::clock64();
      asm volatile("max.s32 %0, %0, %1;" : "+r"(a) : "r"(b));
      asm volatile("max.s32 %0, %0, %1;" : "+r"(a) : "r"(c));
      long long stop = ptx::clock64();
      x[threadIdx.x] = a;
      cycles[threadIdx.x] = stop - start;
    }"""
    cubin = compile_source(source, "maxima.cu", arch, kernel="maxima")
    contract = SassContract((OpCount("VIMNMX", 2),), distance=1)
    found = sass.check(contract, cubin.instructions(), by_name(arch), cubin.resources)
    assert found == ("0 VIMNMX where 2 are declared", "1 VIMNMX3 not declared")
