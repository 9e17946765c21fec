// A grid streams through memory far larger than the L2: MODE 0 reads, 1 writes, 2 copies the first half onto
// the second. FLIGHT 16-byte accesses of every thread are in flight at once.
#include "ptx/memory.cuh"

#define CHUNK_BYTES (THREADS * 16 * FLIGHT)

extern "C" __global__ void __launch_bounds__(THREADS)
    dram_bandwidth(ptx::u64 source, ptx::u64 target, int chunks, unsigned* out) {
  ptx::u64 lane = threadIdx.x * 16;
  unsigned sum = 0;
#pragma unroll 1
  for (int chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    ptx::u64 offset = lane + (ptx::u64)chunk * CHUNK_BYTES;
    ptx::vec4 v[FLIGHT];
#pragma unroll
    for (int j = 0; j < FLIGHT; ++j) {
      if (MODE == 1) v[j] = {(unsigned)chunk, threadIdx.x, blockIdx.x, (unsigned)j};
      if (MODE != 1) v[j] = ptx::load4_cg(source + offset + j * (THREADS * 16));
    }
#pragma unroll
    for (int j = 0; j < FLIGHT; ++j) {
      if (MODE == 0) sum ^= v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
      if (MODE != 0) ptx::store4(target + offset + j * (THREADS * 16), v[j]);
    }
  }
  if (MODE == 0) out[blockIdx.x * THREADS + threadIdx.x] = sum;
}
