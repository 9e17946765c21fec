// Attention forward for few rows and many keys, on sm80 and what came after: the pipeline of all that generation's kernels
// over a part of the keys, so that all SMs read K and V (the split of Flash-Decoding). With PACK_GQA heads of a group
// share a tile's rows, and with them one reading of K and V; with KEY_WARPS warps share rows.
#include "added_parts.cuh"
#include "config.cuh"
#include "key_warps.cuh"
#include "pipeline.cuh"
#include "place.cuh"

// A warp's own rows: their outputs, or what its part leaves of them.
template <class Rows>
__device__ __forceinline__ void leave_fragments(Rows& rows, const Parts& parts, int number, bool far) {
  if (parts.count > 1) return parts.leave(rows, number);
#pragma unroll
  for (int m = 0; m < kPanels; ++m) {
    scale_offsets(rows.state[m], far ? rows.launch.scale_log2 : 1.f);
    store_fragment(rows.launch, parts.work, parts.work.row + rows.warp_row() + 16 * m + rows.lane() / 4, rows.lane(),
                   rows.o[m], rows.state[m]);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, BLOCKS)
    attention_forward_sm80_split(const __grid_constant__ Launch launch) {
  LoopOf<(KEY_STAGES > 0)>::Type self(launch);
  if (threadIdx.x == 0) ptx::store_shared(self.at.second_time, 0);
  const Place place = Place::of(launch);
  if (Place::in_grid(launch).remainder >= place.count) return;
#pragma unroll 1
  while (true) {
    const Work work = place.part(Place::in_grid(launch).remainder);
    if (work.sees_nothing()) return store_unseen(launch, work, true);
    if (self.run(work)) break;
  }
  const Work& work = place.work;
  const Divided at = Place::in_grid(launch);
  const Parts parts{launch, work, at.quotient, place.count};
  const bool far = ptx::load_shared(self.at.second_time) != 0;
  if constexpr (kKeyWarps > 1)
    leave_key_warps(self, parts, at.remainder, far);
  else if (!self.is_idle(work))
    leave_fragments(self, parts, at.remainder, far);
  if (parts.count > 1) {
    if (!parts.arrive(self.at.votes)) return;
    store_parts(parts);
  }
  store_unseen(launch, work, false);
}
