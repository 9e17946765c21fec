// Every SM reads all of a footprint that fits the L2, past its own L1 (ld.cg), a chunk a trip. Block b starts at chunk
// b. With an odd step the blocks that run together read different chunks; with step 1 they soon read what a neighbour
// has just asked for.
#include "ptx/memory.cuh"

#define CHUNK_BYTES (THREADS * 16 * FLIGHT)

extern "C" __global__ void __launch_bounds__(THREADS)
    l2_bandwidth(ptx::u64 base, int chunk_mask, int chunk_step, int trips, unsigned* out) {
  ptx::u64 mine = base + threadIdx.x * 16;
  unsigned sum = 0;
  int chunk = blockIdx.x;
#pragma unroll 1
  for (int i = 0; i < trips; ++i) {
    ptx::u64 address = mine + (ptx::u64)((chunk & chunk_mask) * CHUNK_BYTES);
    chunk += chunk_step;
    ptx::vec4 v[FLIGHT];
#pragma unroll
    for (int j = 0; j < FLIGHT; ++j) v[j] = ptx::load4_cg(address + j * (THREADS * 16));
#pragma unroll
    for (int j = 0; j < FLIGHT; ++j) sum ^= v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
  }
  out[blockIdx.x * THREADS + threadIdx.x] = sum;
}
