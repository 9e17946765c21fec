// One warp multiplies twice into the same accumulators. Two ldmatrix bring each A, one brings both B.
#include "ptx/ldmatrix.cuh"
#include "ptx/memory.cuh"
#include "ptx/mma_sync.cuh"

extern "C" __global__ void minimal(float* d) {
  const unsigned lane = threadIdx.x, row = ptx::shared_base() + 16 * lane;
  unsigned fa[2][4], fb[4];
  float fd[4] = {};
  ptx::ldmatrix(fa[0], row);
  ptx::ldmatrix(fa[1], row + 512);
  ptx::ldmatrix(fb, row + 1024);
  const unsigned first[2] = {fb[0], fb[1]}, second[2] = {fb[2], fb[3]};
  ptx::mma_m16n8k16_f16(fd, fa[0], first);
  ptx::mma_m16n8k16_f16(fd, fa[1], second);
  for (unsigned i = 0; i < 4; ++i) d[32 * i + lane] = fd[i];
}
