// What lies behind the end of a packed sequence, or of the keys that it uses, is another one's, or nobody's, and may be
// NaN. p of its keys is 0, but 0 * NaN is NaN; and TMA brings zeros only from beyond the whole tensor. So the last tile
// of V lands on a barrier of its own, and a warp clears what reaches over the end before the tensor cores hear of it.
#pragma once
#include "block_pair.cuh"
#include "ptx/barrier.cuh"

__device__ __forceinline__ void clear(const Launch& launch, const Rooms& at) {
  constexpr int kSpan = ValuePanels::kSpan;
  const int lane = threadIdx.x % 32;
  Ring<kStages> ring;
  Slot slot;
  unsigned parities = 0;  // of the barriers of uncleared tiles, one bit each
  while (true) {
    const ptx::vec4 tile_at = receive(at, slot, lane);
    if (tile_at.x == kNoTile) break;
    const Work work = own_work(launch, tile_at);
    if (work.sees_nothing()) continue;
    const int tiles = tiles_of(work);
    const Ring<kStages> v{ring.count + min(kTilesAhead, tiles)};
    ptx::mbarrier_wait(at.kv_raw + 8 * v.stage(), parities >> v.stage() & 1);
    parities ^= 1u << v.stage();
    const unsigned tile = at.kv + v.stage() * kStageBytes;
    const int begin = work.keys - (work.last - 1) * kKeys;
#pragma unroll 1
    for (int panel = 0; panel < ValuePanels::kCount; ++panel)
#pragma unroll 1
      for (int byte = begin * kSpan + lane * 16; byte < kKeys * kSpan; byte += 32 * 16)
        ptx::store_shared4(tile + panel * kKeys * kSpan + byte, {0, 0, 0, 0});
    ptx::fence_proxy_async();
    arrive_together(at.kv_full + 8 * v.stage());
    ring.count += 2 * tiles;
  }
}
