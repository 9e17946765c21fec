// Attention forward for sm80 and what came after: cp.async into XOR-swizzled shared memory, ldmatrix, mma m16n8k16,
// scores and outputs in registers. Each warp runs its own software pipeline over slices of keys (pipeline.cuh).
#include "config.cuh"
#include "pipeline.cuh"
#include "ptx/memory.cuh"

extern "C" __global__ void __launch_bounds__(kThreads, BLOCKS)
    attention_forward_sm80(const __grid_constant__ Launch launch) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const Work work = work_of(launch, divided(launch, blockIdx.x));
  if (work.sees_nothing()) {
    for (int panel = 0; panel < kPanels; ++panel)
      store_nothing(launch, work, work.row + warp * kWarpRows + panel * 16 + lane / 4, lane);
    return;
  }
  Pipeline self(launch, work, warp, lane);
  if (!self.run(false)) self.run(true);
  self.store();
}
