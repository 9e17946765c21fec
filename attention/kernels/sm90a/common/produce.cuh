// The producer: one thread that keeps the rings of K and V filled by TMA, newest keys first, and fetches Q for each
// warpgroup as soon as that one has done with the last.
#pragma once
#include "clear.cuh"
#include "lead.cuh"
#include "pairs.cuh"
#include "parts.cuh"
#include "ptx/mbarrier.cuh"
#include "schedule.cuh"
#include "shared_keys.cuh"

// From `column` on, which is negative where nothing is before a row's first number (lead.cuh): TMA gives zeros for that.
template <class Panels>
__device__ __forceinline__ void load_rows(unsigned to, const ptx::TensorMap* map, unsigned full, int rows, int column,
                                          int row, int head, int batch) {
#pragma unroll
  for (int panel = 0; panel < Panels::kCount; ++panel)
    ptx::tensor_load(to + panel * rows * Panels::kSpan, map, full, column + panel * Panels::kWidth, row, head, batch);
}

// Q of a warpgroup, whose rows begin with `row`. Of a group's heads a box has as many whole queries as 64 rows hold.
__device__ __forceinline__ void load_queries(const Launch& launch, const Rooms& at, const Work& work, int group) {
  const int row = work.row + group * kGroupRows, column = -lead_of_keys(launch, kv_head_of(launch, work));
  const unsigned full = at.q_full + 8 * group, to = at.q + group * kQBytes;
  if constexpr (kPackGqa) {
    ptx::mbarrier_arrive_expect(full, kGroupRows / work.group * work.group * KeyPanels::kRowBytes);
#pragma unroll
    for (int panel = 0; panel < KeyPanels::kCount; ++panel)
      ptx::tensor_load(to + panel * kGroupRows * KeyPanels::kSpan, &launch.q, full, column + panel * KeyPanels::kWidth,
                       0, work.query_start + work.query_of(row), work.head, work.plane);
  } else {
    ptx::mbarrier_arrive_expect(full, kQBytes);
    load_rows<KeyPanels>(to, &launch.q, full, kGroupRows, column, work.query_start + row, work.head, work.plane);
  }
}

// Into the ring's next stage as soon as that is empty; `full` is where the bytes are counted.
template <class Panels>
__device__ __forceinline__ void load_tile(unsigned to, const ptx::TensorMap* map, unsigned full, unsigned empty,
                                          const Ring<kStages>& ring, int column, int row, int head, int plane) {
  constexpr int kBytes = kKeys * Panels::kRowBytes;
  ptx::mbarrier_wait(empty + 8 * ring.stage(), ring.parity() ^ 1);
  ptx::mbarrier_arrive_expect(full, kBytes);
  if constexpr (kKeysOfTwo)
    load_half<Panels>(to + ring.stage() * kBytes, map, full, column, row, head, plane);
  else
    load_rows<Panels>(to + ring.stage() * kBytes, map, full, kKeys, column, row, head, plane);
}

__device__ __forceinline__ void produce(const Launch& launch, const Rooms& at) {
  Ring<kStages> ring;  // a tile of K and that of V take the same turn
  Ring<1> q;
  Slot slot;
  Numbers<kTwoBlocks> numbers;
  Takes takes(launch);
  int next = blockIdx.x / kCluster;
  // Beside the last V of the tile before. Taken ahead of the first loads, these waited for the counter (1 to 8 % of a
  // small call, H200), and of few unequal tiles a block took two at once (up to a third of the time, H100).
  const auto advance = [&] {
    if (kDynamic && !takes_tiles()) return;
    next = kDynamic ? takes.next(launch) : next + gridDim.x / kCluster;
    if (kDynamic) numbers.tell(at, next);
  };
  // Behind that V: the other block may be late.
  const auto hear = [&] {
    if (kDynamic && !takes_tiles()) next = numbers.hear(at);
  };
  while (true) {
    ptx::vec4 tile_at = takes.told(launch, next);
    if (kPair) tile_at.y += ptx::cluster_rank();
    if (kKeysOfTwo && tile_at.x != kNoTile) tile_at.x += ptx::cluster_rank() * kTileRows;
    publish(at, slot, tile_at);
    if (tile_at.x == kNoTile) break;
    const Part work = Part::of(launch, tile_at);
    if (work.sees_nothing()) {
      advance();
      hear();
      continue;
    }
    const int kv_head = kv_head_of(launch, work);
    const auto load_k = [&](int key, Ring<kStages> turn) {
      load_tile<KeyPanels>(at.k, &launch.k, at.k_full + 8 * turn.stage(), at.k_empty, turn,
                           -lead_of_keys(launch, kv_head), key, kv_head, work.plane);
    };
    const auto load_v = [&](int key, bool last) {
      load_tile<ValuePanels>(at.v, &launch.v, (kOwnLengths && last ? at.v_raw : at.v_full) + 8 * ring.stage(),
                             at.v_empty, ring, -lead_of_values(launch, kv_head), key, kv_head, work.plane);
      ring.advance();
    };
    const int first = work.key_start + work.first * kKeys;
    int key = work.key_start + (work.last - 1) * kKeys;
    load_k(key, ring);
    for (int group = 0; group < kWarpgroups; ++group) {
      ptx::mbarrier_wait(at.q_empty + 8 * group, q.parity() ^ 1);
      load_queries(launch, at, work, group);
    }
    q.advance();
    bool last = true;
    for (; key > first; key -= kKeys, last = false) {
      load_k(key - kKeys, {ring.count + 1});
      load_v(key, last);
    }
    advance();
    load_v(key, last);
    hear();
  }
  if (kDynamic && !kKeyParts && takes_tiles()) put_counters_back(launch);
}
