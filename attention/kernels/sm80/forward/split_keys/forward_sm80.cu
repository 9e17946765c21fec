// Attention forward for few rows and many keys, on sm80 and what came after: the pipeline of all that generation's kernels
// over a part of the keys, so that all SMs read K and V (the split of Flash-Decoding). With PACK_GQA heads of a group
// share a tile's rows, and with them one reading of K and V; with KEY_WARPS warps share rows.
#include "added_parts.cuh"
#include "config.cuh"
#include "key_splits.cuh"
#include "key_warps.cuh"
#include "pipeline.cuh"

extern "C" __global__ void __launch_bounds__(kThreads, BLOCKS)
    attention_forward_sm80_split(const __grid_constant__ Launch launch) {
  LoopOf<(KEY_STAGES > 0)>::Type self(launch);
  if (threadIdx.x == 0) ptx::store_shared(self.at.second_time, 0);
#pragma unroll 1
  while (true) {
    const Part part(launch);
    Work work = part.work(launch);
    if (!part.narrow(launch, work)) return;
    if (work.sees_nothing()) return store_unseen(launch, work, true);
    if (self.run(work)) break;
  }
  const Part part(launch);
  const Work work = part.work(launch);
  const Parts parts{launch, work, part.tile, Part::count(launch, work)};
  join_key_warps(self, ptx::load_shared(self.at.second_time) ? launch.scale_log2 : 1.f);
  const bool has_rows = self.key_warp() == 0 && !self.is_idle(work);
  if (parts.count > 1) {
    if (has_rows) parts.leave(self, part.number);
    if (!parts.arrive(self.at.votes)) return;
    store_parts(parts);
  } else if (has_rows) {
    const float scale = ptx::load_shared(self.at.second_time) ? launch.scale_log2 : 1.f;
#pragma unroll
    for (int m = 0; m < kPanels; ++m) {
      scale_offsets(self.state[m], scale);
      store_fragment(launch, work, work.row + self.warp_row() + 16 * m + self.lane() / 4, self.lane(), self.o[m],
                     self.state[m]);
    }
  }
  store_unseen(launch, work, false);
}
