// Attention forward for sm80 and what came after: cp.async into XOR-swizzled shared memory, ldmatrix, mma m16n8k16,
// scores and outputs in registers. Each warp runs its own software pipeline over slices of keys (pipeline.cuh).
#include "config.cuh"
#include "pipeline.cuh"
#include "ptx/memory.cuh"
#include "strided.cuh"

extern "C" __global__ void __launch_bounds__(kThreads, BLOCKS)
    attention_forward_sm80(const __grid_constant__ Launch launch) {
  Pipeline self(launch);
  if (threadIdx.x == 0) ptx::store_shared(self.at.second_time, 0);
#pragma unroll 1
  while (true) {
    const Work work = work_again(launch);
    if (work.sees_nothing()) {
      for (int panel = 0; panel < kPanels; ++panel)
        store_nothing(launch, work, work.row + self.warp_row() + panel * 16 + self.lane() / 4, self.lane());
      return;
    }
    if (self.run(work)) break;
  }
  self.store(work_again(launch));
}
