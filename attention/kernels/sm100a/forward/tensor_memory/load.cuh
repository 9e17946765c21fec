// The loader: one thread that hands out tiles of rows, and keeps Q and the ring of K and V filled by TMA.
#pragma once
#include "block_pair.cuh"

template <class Panels>
__device__ __forceinline__ void load_rows(unsigned to, const ptx::TensorMap* map, unsigned full, int rows, int row,
                                          int column, int head, int plane) {
#pragma unroll
  for (int panel = 0; panel < Panels::kCount; ++panel)
    ptx::tensor_load(to + panel * rows * Panels::kSpan, map, full, column + panel * Panels::kWidth, row, head, plane);
}

__device__ __forceinline__ void load(const Launch& launch, const Rooms& at) {
  Ring<kStages> ring;
  Ring<1> q;
  Slot slot;
  int next = blockIdx.x / kGroup;
  while (true) {
    const ptx::vec4 tile_at = divided(launch, next);
    publish(at, slot, tile_at);
    if (tile_at.x == kNoTile) break;
    next = kDynamic ? take_tile(launch) : next + gridDim.x / kGroup;
    const Work work = own_work(launch, tile_at);
    if (work.sees_nothing()) continue;
    const int tiles = tiles_of(work), head = work.head / launch.heads_per_kv;
    // Tiles of keys are counted from the last one down. `full` is where the bytes are counted.
    const auto load_keys = [&](auto panels, int rows, const ptx::TensorMap* map, unsigned full, int tile, int row,
                               int column) {
      const int bytes = panels.kCount * rows * panels.kSpan;
      ptx::mbarrier_wait(at.kv_empty + 8 * ring.stage(), ring.parity() ^ 1);
      ptx::mbarrier_arrive_expect(full + 8 * ring.stage(), bytes);
      load_rows<decltype(panels)>(at.kv + ring.stage() * kStageBytes, map, full + 8 * ring.stage(), rows,
                                  work.key_start + (work.last - 1 - tile) * kKeys + row, column, head, work.plane);
      ring.advance();
    };
    const auto load_k = [&](int tile) {
      load_keys(KeyPanels{}, kHeldKeys, &launch.k, at.kv_full, tile, block_of_pair() * kHeldKeys, 0);
    };
    const auto load_v = [&](unsigned full, int tile) {
      load_keys(ValuePanels{}, kKeys, &launch.v, full, tile, 0, block_of_pair() * kHeldValues);
    };
    for (int tile = 0; tile < min(kTilesAhead, tiles); ++tile) {
      load_k(tile);
      if (tile > 0) continue;
#pragma unroll
      for (int each = 0; each < kQueryTiles; ++each) {
        const unsigned full = at.q_full + 8 * each;
        ptx::mbarrier_wait(at.q_empty + 8 * each, q.parity() ^ 1);
        ptx::mbarrier_arrive_expect(full, kQBytes);
        load_rows<KeyPanels>(at.q + each * kQBytes, &launch.q, full, kRows, work.query_start + work.row + each * kRows,
                             0, work.head, work.plane);
      }
      q.advance();
    }
    for (int tile = 0; tile < tiles; ++tile) {
      load_v(kOwnLengths && tile == 0 ? at.kv_raw : at.kv_full, tile);
      if (tile + kTilesAhead < tiles) load_k(tile + kTilesAhead);
    }
  }
  if (kDynamic) put_counters_back(launch);
}
