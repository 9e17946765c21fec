// Each SM reads its own slice again and again with 16-byte loads that hit L1. FLIGHT loads of every thread are in
// flight before the first is used. `step` is 0, which ptxas cannot know: it would lift a load of one address out of the
// loop.
#include "ptx/memory.cuh"
#include "timing.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    l1_bandwidth(ptx::u64 base, int step, int trips, unsigned* out, long long* clocks) {
  ptx::u64 mine = base + (ptx::u64)blockIdx.x * (THREADS * 16 * FLIGHT) + threadIdx.x * 16;
  unsigned sum = 0;
  long long start = ptx::clock64();
#pragma unroll 1
  for (int i = 0; i < trips; ++i, mine += step) {
    ptx::vec4 v[FLIGHT];
#pragma unroll
    for (int j = 0; j < FLIGHT; ++j) v[j] = ptx::load4(mine + j * (THREADS * 16));
#pragma unroll
    for (int j = 0; j < FLIGHT; ++j) sum ^= v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
  }
  ptx::settle(sum);
  long long end = ptx::clock64();
  out[blockIdx.x * THREADS + threadIdx.x] = sum;
  report(clocks, start, end);
}
