// A chase in shared memory. Raw: the loaded word is the next 32-bit address, and the chain is LDS alone. INDEX: the
// word is an index, and since sm_90 has no scaled shared address ([R.X4] of sm_80), a LEA stands before every LDS.
#include "ptx/memory.cuh"
#include "timing.cuh"

#define CHAIN 64
#define WORDS 1024

__device__ __forceinline__ unsigned step(unsigned base, unsigned at) {
  return INDEX ? ptx::load_shared(base + at * 4) : ptx::load_shared(at);
}

extern "C" __global__ void smem_latency(int hop, int trips, unsigned* out, long long* clocks) {
  unsigned base = ptx::shared_base();
  for (int i = threadIdx.x; i < WORDS; i += 32) {
    unsigned next = (i + hop) % WORDS;
    ptx::store_shared(base + i * 4, INDEX ? next : base + next * 4);
  }
  __syncthreads();
  if (threadIdx.x) return;
  unsigned at = INDEX ? 0 : base;
  ptx::settle(at);
  long long start = ptx::clock64();
#pragma unroll 1
  for (int i = 0; i < trips; ++i) {
#pragma unroll
    for (int j = 0; j < CHAIN; ++j) at = step(base, at);
  }
  ptx::settle(at);
  long long end = ptx::clock64();
  out[blockIdx.x] = at;
  report(clocks, start, end);
}
