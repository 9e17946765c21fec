// The producer: one thread that keeps the rings of K and V filled by TMA, newest keys first, and fetches Q for each
// warpgroup as soon as that one has done with the last.
#pragma once
#include "ptx/mbarrier.cuh"
#include "schedule.cuh"

// A ring position: the stage, and the parity of the phase that fills it.
struct Ring {
  int stage = 0;
  unsigned parity = 0;

  __device__ __forceinline__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

__device__ __forceinline__ void load_rows(unsigned to, const ptx::TensorMap* map, unsigned full, int rows, int row,
                                          int head, int batch) {
#pragma unroll
  for (int panel = 0; panel < kPanels; ++panel)
    ptx::tensor_load(to + panel * rows * kSpan, map, full, panel * kPanelWidth, row, head, batch);
}

__device__ __forceinline__ void load_tile(unsigned to, const ptx::TensorMap* map, unsigned full, unsigned empty,
                                          const Ring& ring, int row, int head, int plane) {
  ptx::mbarrier_wait(empty + 8 * ring.stage, ring.parity ^ 1);
  ptx::mbarrier_arrive_expect(full + 8 * ring.stage, kTileBytes);
  load_rows(to + ring.stage * kTileBytes, map, full + 8 * ring.stage, kKeys, row, head, plane);
}

__device__ __forceinline__ void produce(const Launch& launch, const Rooms& at) {
  Ring k, v;
  unsigned q_parity = 1;
  Slot slot;
  int next = blockIdx.x;
  while (true) {
    const int taken = next;
    publish_tile(at, slot, taken);
    if (taken >= launch.tiles) break;
    next = take_tile(launch);
    const Work work = work_of(launch, taken);
    const KeyTiles keys = keys_of(work);
    if (keys.first == keys.last) continue;
    const int kv_head = work.head / launch.heads_per_kv;
    load_tile(at.k, &launch.k, at.k_full, at.k_empty, k, work.key_start + (keys.last - 1) * kKeys, kv_head, work.plane);
    k.advance();
    for (int group = 0; group < kWarpgroups; ++group) {
      ptx::mbarrier_wait(at.q_empty + 8 * group, q_parity);
      ptx::mbarrier_arrive_expect(at.q_full + 8 * group, kQBytes);
      load_rows(at.q + group * kQBytes, &launch.q, at.q_full + 8 * group, kGroupRows,
                work.query_start + work.row + group * kGroupRows, work.head, work.plane);
    }
    q_parity ^= 1;
    for (int tile = keys.last - 2; tile >= keys.first; --tile) {
      load_tile(at.k, &launch.k, at.k_full, at.k_empty, k, work.key_start + tile * kKeys, kv_head, work.plane);
      k.advance();
      load_tile(at.v, &launch.v, at.v_full, at.v_empty, v, work.key_start + (tile + 1) * kKeys, kv_head, work.plane);
      v.advance();
    }
    load_tile(at.v, &launch.v, at.v_full, at.v_empty, v, work.key_start + keys.first * kKeys, kv_head, work.plane);
    v.advance();
  }
  put_counters_back(launch);
}
