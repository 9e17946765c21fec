// Which tile of rows a block works on next, and which keys that tile sees.
//
// Blocks stay, one on each SM. The producer takes the next tile from a counter in global memory while the loads of the
// last one are under way, divides its number into row, head and batch, and hands these to the consumers through two
// slots of shared memory. Without a mask,
// neighbours in time are rows of the same head, so that their K and V meet in the L2. Causal rows see different numbers
// of keys: sections of heads that fit the L2 are taken one after another, longest rows first, so that the blocks end
// together.
#pragma once
#include "config.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/memory.cuh"

// A tile of query rows: its first row, and the sequence it belongs to. `query_start` and `key_start` are where that
// sequence lies in its tensors, `plane` is the maps' last coordinate. Keys [first, last) come in tiles.
struct Work {
  int row, head, batch;
  int plane, queries, keys, query_start, key_start;
  int right, left, first, last;

  __device__ __forceinline__ bool sees_nothing() const { return first == last; }
};

// A position in a ring: how many have gone before. One register, where registers are short.
template <unsigned Length>
struct Ring {
  unsigned count = 0;

  __device__ __forceinline__ unsigned stage() const { return count % Length; }
  __device__ __forceinline__ unsigned parity() const { return count / Length & 1; }
  __device__ __forceinline__ void advance() { ++count; }
};

using Slot = Ring<2>;  // of the two that carry tiles

constexpr unsigned kNoTile = ~0u;

__device__ __forceinline__ int take_tile(const Launch& launch) { return gridDim.x + atomicAdd(launch.counters, 1); }

// The last block leaves the counters as the next launch on this stream expects them.
__device__ __forceinline__ void put_counters_back(const Launch& launch) {
  __threadfence();
  if (atomicAdd(launch.counters + 1, 1) != gridDim.x - 1) return;
  __threadfence();
  launch.counters[0] = 0;
  launch.counters[1] = 0;
}

// Row, head and batch of a tile; row kNoTile where there are no more.
__device__ __forceinline__ ptx::vec4 divided(const Launch& launch, int tile) {
  if (tile >= launch.tiles) return {kNoTile, 0, 0, 0};
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
  const unsigned head = pair % launch.heads, batch = pair / launch.heads;
  return {static_cast<unsigned>(row_tile * kTileRows), head, batch, 0};
}

__device__ __forceinline__ Work work_of(const Launch& launch, const ptx::vec4& tile) {
  Work work{static_cast<int>(tile.x), static_cast<int>(tile.y), static_cast<int>(tile.z)};
  work.plane = kVarlen ? 0 : work.batch;
  work.query_start = kVarlen ? launch.query_starts[work.batch] : 0;
  work.key_start = kVarlen ? launch.key_starts[work.batch] : 0;
  work.queries = kVarlen ? launch.query_starts[work.batch + 1] - work.query_start : launch.queries;
  work.keys = kVarlen ? launch.key_starts[work.batch + 1] - work.key_start : launch.keys;
  work.right = launch.right + (kVarlen ? launch.moves * (work.keys - work.queries) : 0);
  work.left = launch.left + (kVarlen ? launch.moves * (work.keys - work.queries) : 0);
  int end = work.keys, begin = 0;
  if (kCausal) end = min(end, work.row + kTileRows + work.right);
  if (kWindow) begin = max(0, work.row + work.left);
  const bool nothing = end <= begin || (kVarlen && work.row >= work.queries);
  work.first = nothing ? 0 : begin / kKeys;
  work.last = nothing ? 0 : (end + kKeys - 1) / kKeys;
  return work;
}

__device__ __forceinline__ void publish(const Rooms& at, Slot& slot, const ptx::vec4& tile) {
  ptx::mbarrier_wait(at.tile_empty + 8 * slot.stage(), slot.parity() ^ 1);
  ptx::store_shared4(at.tile + 16 * slot.stage(), tile);
  ptx::mbarrier_arrive(at.tile_full + 8 * slot.stage());
  slot.advance();
}

// By a whole warp.
__device__ __forceinline__ ptx::vec4 receive(const Rooms& at, Slot& slot, int lane) {
  ptx::mbarrier_wait(at.tile_full + 8 * slot.stage(), slot.parity());
  ptx::vec4 tile{0, 0, 0, 0};
  if (lane == 0) tile = ptx::load_shared4(at.tile + 16 * slot.stage());
  tile = {__shfl_sync(~0u, tile.x, 0), __shfl_sync(~0u, tile.y, 0), __shfl_sync(~0u, tile.z, 0), 0};
  if (lane == 0) ptx::mbarrier_arrive(at.tile_empty + 8 * slot.stage());
  slot.advance();
  return tile;
}
