// Which tile of rows a block works on next, and which keys that tile sees.
//
// Blocks stay, one on each SM. The producer takes the next tile from a counter in global memory while the loads of the
// last one are under way, and hands its number to the consumers through two slots of shared memory. Without a mask,
// neighbours in time are rows of the same head, so that their K and V meet in the L2. Causal rows see different numbers
// of keys: sections of heads that fit the L2 are taken one after another, longest rows first, so that the blocks end
// together.
#pragma once
#include "config.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/memory.cuh"

// A tile of query rows: its first row, and the sequence it belongs to. `query_start` and `key_start` are where that
// sequence lies in its tensors, `plane` is the maps' last coordinate.
struct Work {
  int row, head, batch, plane;
  int queries, keys, query_start, key_start;
  int right, left;
};

// Tiles of keys [first, last).
struct KeyTiles {
  int first, last;
};

// One of the two slots that carry tile numbers, and the parity of its phase.
struct Slot {
  int index = 0;
  unsigned parity = 0;

  __device__ __forceinline__ void advance() {
    parity ^= index;
    index ^= 1;
  }
};

__device__ __forceinline__ void publish_tile(const Rooms& at, Slot& slot, int tile) {
  ptx::mbarrier_wait(at.tile_empty + 8 * slot.index, slot.parity ^ 1);
  ptx::store_shared(at.tile + 4 * slot.index, tile);
  ptx::mbarrier_arrive(at.tile_full + 8 * slot.index);
  slot.advance();
}

// By a whole warp.
__device__ __forceinline__ int receive_tile(const Rooms& at, Slot& slot, int lane) {
  ptx::mbarrier_wait(at.tile_full + 8 * slot.index, slot.parity);
  const int tile = __shfl_sync(~0u, lane ? 0 : static_cast<int>(ptx::load_shared(at.tile + 4 * slot.index)), 0);
  if (lane == 0) ptx::mbarrier_arrive(at.tile_empty + 8 * slot.index);
  slot.advance();
  return tile;
}

__device__ __forceinline__ int take_tile(const Launch& launch) { return gridDim.x + atomicAdd(launch.counters, 1); }

// The last block leaves the counters as the next launch on this stream expects them.
__device__ __forceinline__ void put_counters_back(const Launch& launch) {
  if (atomicAdd(launch.counters + 1, 1) != gridDim.x - 1) return;
  launch.counters[0] = 0;
  launch.counters[1] = 0;
}

__device__ __forceinline__ Work work_of(const Launch& launch, int tile) {
  int row_tile, pair;
  if (kCausal) {
    const int section_tiles = launch.section * launch.row_tiles, pairs = launch.batch * launch.heads;
    const int section = tile / section_tiles, within = tile - section * section_tiles;
    const int width = min(launch.section, pairs - section * launch.section);
    row_tile = launch.row_tiles - 1 - within / width;
    pair = section * launch.section + within % width;
  } else {
    row_tile = tile % launch.row_tiles;
    pair = tile / launch.row_tiles;
  }
  Work work{row_tile * kTileRows, pair % launch.heads, pair / launch.heads};
  work.plane = kVarlen ? 0 : work.batch;
  work.query_start = kVarlen ? launch.query_starts[work.batch] : 0;
  work.key_start = kVarlen ? launch.key_starts[work.batch] : 0;
  work.queries = kVarlen ? launch.query_starts[work.batch + 1] - work.query_start : launch.queries;
  work.keys = kVarlen ? launch.key_starts[work.batch + 1] - work.key_start : launch.keys;
  work.right = launch.right + (kVarlen ? work.keys - work.queries : 0);
  work.left = launch.left + (kVarlen ? work.keys - work.queries : 0);
  return work;
}

__device__ __forceinline__ KeyTiles keys_of(const Work& work) {
  int end = work.keys, begin = 0;
  if (kCausal) end = min(end, work.row + kTileRows + work.right);
  if (kWindow) begin = max(0, work.row + work.left);
  if (end <= begin || (kVarlen && work.row >= work.queries)) return {0, 0};
  return {begin / kKeys, (end + kKeys - 1) / kKeys};
}
