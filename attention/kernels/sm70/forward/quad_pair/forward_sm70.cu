// Attention forward for Volta: mma m8n8k4 in quad pairs two by two, scores and outputs in registers, K and V to shared
// memory by way of registers.
#include "config.cuh"
#include "key_splits.cuh"
#include "staged_loop.cuh"
#include "store_quad_pair.cuh"

struct Forward : StagedLoop {
  __device__ __forceinline__ explicit Forward(const Launch& launch) : StagedLoop(launch) {}

  __device__ __forceinline__ void store(const Work& work) const {
#pragma unroll
    for (int m = 0; m < kPanels; ++m) store_panel(launch, work, work.row + warp_row() + 16 * m, place, o[m], state[m]);
  }

  // Rows that see no key at all. Of warps that share rows one writes all of their columns.
  __device__ __forceinline__ void store_none(const Work& work) const {
    if (part() > 0) return;
    for (int m = 0; m < kPanels; ++m)
      store_nothing(launch, work, work.row + warp_row() + 16 * m + place.lane / 4, place.lane);
  }
};

extern "C" __global__ void __launch_bounds__(kThreads, BLOCKS)
    attention_forward_sm70(const __grid_constant__ Launch launch) {
  Forward self(launch);
  const Part part(launch);
  Work work = part.work(launch);
  if (!part.narrow(launch, work)) return;
  if (work.sees_nothing()) return self.store_none(work);
  self.run(work);
  if (!gather(self)) return;
  self.sum_up();
  self.store(Part(launch).work(launch));
}
