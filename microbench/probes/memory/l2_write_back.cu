// A grid reads `chunks` chunks past the L1, each line once: FLIGHT 16-byte loads of every thread are in flight at once.
// What a warp read it leaves as one word, so that the probe itself makes few lines of the L2 dirty.
#include "ptx/memory.cuh"

#define CHUNK_BYTES (THREADS * 16 * FLIGHT)

extern "C" __global__ void __launch_bounds__(THREADS) l2_write_back(ptx::u64 source, int chunks, unsigned* out) {
  ptx::u64 lane = threadIdx.x * 16;
  unsigned sum = 0;
#pragma unroll 1
  for (int chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    ptx::u64 offset = lane + (ptx::u64)chunk * CHUNK_BYTES;
    ptx::vec4 v[FLIGHT];
#pragma unroll
    for (int j = 0; j < FLIGHT; ++j) v[j] = ptx::load4_cg(source + offset + j * (THREADS * 16));
#pragma unroll
    for (int j = 0; j < FLIGHT; ++j) sum ^= v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
  }
  for (int lanes = 16; lanes; lanes /= 2) sum ^= __shfl_xor_sync(~0u, sum, lanes);
  if (threadIdx.x % 32 == 0) out[(blockIdx.x * THREADS + threadIdx.x) / 32] = sum;
}
