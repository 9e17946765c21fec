// A warpgroup multiplies twice into the same accumulators. Both operands stay in shared memory; only a wait tells when
// the accumulators may be read.
#include "ptx/memory.cuh"
#include "ptx/wgmma.cuh"

extern "C" __global__ void __launch_bounds__(128, 1) minimal(float* d) {
  const unsigned tile = ptx::shared_base();
  const unsigned long long a = ptx::wgmma_descriptor(tile), b = ptx::wgmma_descriptor(tile + 8192);
  float fd[4] = {};
  ptx::wgmma_fence();
  ptx::wgmma_f16_ss(fd, a, b, 1);
  ptx::wgmma_f16_ss(fd, a + ptx::wgmma_slice(1), b + ptx::wgmma_slice(1), 1);
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
  for (unsigned i = 0; i < 4; ++i) d[128 * i + threadIdx.x] = fd[i];
}
