// One warp multiplies twice into the same accumulators. No ldmatrix yet: fragments come by ordinary loads.
#include "ptx/mma_sm70.cuh"

extern "C" __global__ void minimal(const unsigned* a, const unsigned* b, float* d) {
  const unsigned lane = threadIdx.x;
  unsigned fa[2][2], fb[2][2];
  float fd[8] = {};
  for (unsigned i = 0; i < 4; ++i) {
    fa[i / 2][i % 2] = a[32 * i + lane];
    fb[i / 2][i % 2] = b[32 * i + lane];
  }
  for (unsigned k = 0; k < 2; ++k) ptx::mma_m8n8k4<ptx::Order::row, ptx::Order::col>(fd, fa[k], fb[k]);
  for (unsigned i = 0; i < 8; ++i) d[32 * i + lane] = fd[i];
}
