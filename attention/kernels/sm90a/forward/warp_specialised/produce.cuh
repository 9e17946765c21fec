// The producer: one thread that keeps the rings of K and V filled by TMA, newest keys first, and fetches Q for each
// warpgroup as soon as that one has done with the last.
#pragma once
#include "ptx/mbarrier.cuh"
#include "schedule.cuh"

__device__ __forceinline__ void load_rows(unsigned to, const ptx::TensorMap* map, unsigned full, int rows, int row,
                                          int head, int batch) {
#pragma unroll
  for (int panel = 0; panel < kPanels; ++panel)
    ptx::tensor_load(to + panel * rows * kSpan, map, full, panel * kPanelWidth, row, head, batch);
}

__device__ __forceinline__ void load_tile(unsigned to, const ptx::TensorMap* map, unsigned full, unsigned empty,
                                          const Ring<kStages>& ring, int row, int head, int plane) {
  ptx::mbarrier_wait(empty + 8 * ring.stage(), ring.parity() ^ 1);
  ptx::mbarrier_arrive_expect(full + 8 * ring.stage(), kTileBytes);
  load_rows(to + ring.stage() * kTileBytes, map, full + 8 * ring.stage(), kKeys, row, head, plane);
}

__device__ __forceinline__ void produce(const Launch& launch, const Rooms& at) {
  Ring<kStages> k, v;
  unsigned q_parity = 1;
  Slot slot;
  int next = blockIdx.x;
  while (true) {
    const ptx::vec4 tile_at = divided(launch, next);
    publish(at, slot, tile_at);
    if (tile_at.x == kNoTile) break;
    next = kDynamic ? take_tile(launch) : next + gridDim.x;
    const Work work = work_of(launch, tile_at);
    if (work.sees_nothing()) continue;
    const int kv_head = work.head / launch.heads_per_kv;
    load_tile(at.k, &launch.k, at.k_full, at.k_empty, k, work.key_start + (work.last - 1) * kKeys, kv_head, work.plane);
    k.advance();
    for (int group = 0; group < kWarpgroups; ++group) {
      ptx::mbarrier_wait(at.q_empty + 8 * group, q_parity);
      ptx::mbarrier_arrive_expect(at.q_full + 8 * group, kQBytes);
      load_rows(at.q + group * kQBytes, &launch.q, at.q_full + 8 * group, kGroupRows,
                work.query_start + work.row + group * kGroupRows, work.head, work.plane);
    }
    q_parity ^= 1;
    for (int tile = work.last - 2; tile >= work.first; --tile) {
      load_tile(at.k, &launch.k, at.k_full, at.k_empty, k, work.key_start + tile * kKeys, kv_head, work.plane);
      k.advance();
      load_tile(at.v, &launch.v, at.v_full, at.v_empty, v, work.key_start + (tile + 1) * kKeys, kv_head, work.plane);
      v.advance();
    }
    load_tile(at.v, &launch.v, at.v_full, at.v_empty, v, work.key_start + work.first * kKeys, kv_head, work.plane);
    v.advance();
  }
  if (kDynamic) put_counters_back(launch);
}
