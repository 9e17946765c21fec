// What lies behind the end of a packed sequence, or of the keys that it uses, is another one's, or nobody's, and may be
// NaN. p of its keys is 0, but 0 * NaN is NaN; and TMA brings zeros only from beyond the whole tensor. So the last tile
// of V lands on a barrier of its own, and a warp of the producer's warpgroup clears what reaches over the end before the
// consumers hear of it.
#pragma once
#include "parts.cuh"
#include "ptx/barrier.cuh"
#include "schedule.cuh"

// Of so many rows those from `begin` on, by so many threads.
template <class Panels, int Rows, int Threads>
__device__ __forceinline__ void clear_rows(unsigned tile, int begin, int thread) {
  constexpr int kSpan = Panels::kSpan;
#pragma unroll 1
  for (int panel = 0; panel < Panels::kCount; ++panel)
#pragma unroll 1
    for (int at = begin * kSpan + thread * 16; at < Rows * kSpan; at += Threads * 16)
      ptx::store_shared4(tile + panel * Rows * kSpan + at, {0, 0, 0, 0});
}

// Rows behind a warpgroup's last whole query, which no box of TMA brings: what lay there may be NaN, whose guesses fail.
__device__ __forceinline__ void clear_rows_of_nobody(const Rooms& at) {
  constexpr int kGroup = Work::group;
  if constexpr (kGroupRows % kGroup == 0) return;
#pragma unroll 1
  for (int each = 0; each < kWarpgroups; ++each)
    clear_rows<KeyPanels, kGroupRows, kThreads>(at.q + each * kQBytes, kGroupRows / kGroup * kGroup, threadIdx.x);
  ptx::fence_proxy_async();
}

// By a whole warp, beside the producer: tiles of rows, and of V, come in the same order.
__device__ __forceinline__ void clear(const Launch& launch, const Rooms& at) {
  const int lane = threadIdx.x % 32;
  Ring<kStages> v;
  Slot slot;
  unsigned parities = 0;  // of the barriers of uncleared tiles, one bit each
  while (true) {
    const ptx::vec4 tile = receive(at, slot, lane);
    if (tile.x == kNoTile) break;
    const Part work = Part::of(launch, tile);
    if (work.sees_nothing()) continue;
    ptx::mbarrier_wait(at.v_raw + 8 * v.stage(), parities >> v.stage() & 1);
    parities ^= 1u << v.stage();
    clear_rows<ValuePanels, kKeys, 32>(at.v + v.stage() * kVBytes, work.keys - (work.last - 1) * kKeys, lane);
    ptx::fence_proxy_async();
    __syncwarp();
    if (lane == 0) ptx::mbarrier_arrive(at.v_full + 8 * v.stage());
    v.count += work.last - work.first;
  }
}
