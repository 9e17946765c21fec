// A mask's rows that the blocks of a pair share, where both heads have the same ones: each block fetches half of a
// warpgroup's rows, which lands in both (multicast).
//
// It halves what the L2 gives of a mask. Of one in float32, K and V at head dim 64 an SM asks for 131 KB a step of 192
// rows and 128 keys, which at 26 to 29 bytes a clock (H200) takes twice the step's time without a mask; in pairs for 82.
// At 4096 tokens, best of some tiles by themselves and in pairs: float32 1848 -> 1499 us, half 1449 -> 1422, bool 1378 ->
// 1348; causal 914 -> 810, 882 -> 770, 797 -> 729.
//
// Of float32 at head dim 64 the rows of 4096 keys come from DRAM as well. What SMs of a section have in common there is
// rows of heads: eight pairs on eight tiles of rows bring 42 MB at a time, where three on all rows bring 75. An H100 took
// 4 % less time so.
//
// Clusters of four took 3 to 12 % longer than pairs (H200): they wait for the slowest of four, and leave four SMs idle.
//
// Rows may be overwritten only when consumers of both blocks have read them. A warp beside the producer waits for that, and
// fetches: a consumer would lose the way there and back at every tile. Two tiles of a mask in flight brought nothing.
#pragma once
#include "mask_rows.cuh"
#include "pairs.cuh"
#include "ptx/multicast.cuh"
#include "seen.cuh"

constexpr int kHalfRows = kGroupRows / 2;

// A mask that each head has of its own is fetched by each block for itself.
__device__ __forceinline__ void fetch_rows(const Launch& launch, const Work& work, unsigned to, unsigned full, int key,
                                           int row) {
  const int batch = launch.mask_batch ? work.batch : 0;
  if (launch.mask_head == 0) {
    const int half = ptx::cluster_rank() * kHalfRows, tile = launch.mask_in_tiles ? key / kKeys : 0;
    ptx::tensor_load_multicast(to + half * kAheadRow, &launch.mask_map, full, kBothBlocks, key - tile * kKeys,
                               row + half, tile, batch);
    return;
  }
#pragma unroll
  for (int half = 0; half < kGroupRows; half += kHalfRows)
    ptx::tensor_load(to + half * kAheadRow, &launch.mask_map, full, key, row + half, work.head, batch);
}

// By one thread: the rows of every warpgroup, tile of keys by tile of keys.
__device__ __forceinline__ void bring_masks(const Launch& launch, const Rooms& at) {
  Slot slot;
  Ring<1> turns[kWarpgroups];
  while (true) {
    const ptx::vec4 tile_at = receive_alone(at, slot);
    if (tile_at.x == kNoTile) break;
    const Work work = work_of(launch, tile_at);
    if (work.sees_nothing()) continue;
#pragma unroll 1
    for (int tile = work.last - 1; tile >= work.first; --tile)
#pragma unroll
      for (int group = 0; group < kWarpgroups; ++group) {
        const int row = work.row + group * kGroupRows, first = first_seen(work, row);
        if (tile > first || tile < least_seen(work, row, first)) continue;
        const unsigned full = at.mask_full + 8 * group;
        ptx::mbarrier_wait(at.mask_empty + 8 * group, turns[group].parity() ^ 1);
        turns[group].advance();
        ptx::mbarrier_arrive_expect(full, kGroupRows * kAheadRow);
        fetch_rows(launch, work, at.ahead + group * kGroupRows * kAheadRow, full, tile * kKeys, row);
      }
  }
}
