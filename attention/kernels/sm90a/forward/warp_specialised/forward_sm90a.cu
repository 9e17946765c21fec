// Attention forward for sm90a: a producer that fetches by TMA, and consumers that multiply by wgmma (common/block.cuh of
// this architecture's kernels).
#include "block.cuh"

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    attention_forward_sm90a(const __grid_constant__ Launch launch) {
  run_block(launch);
}
