// Which rows a tile number stands for, and which keys those rows see.
//
// Without a mask, neighbours in time are rows of the same head, so that their K and V meet in the L2. Causal rows see
// different numbers of keys: sections of heads (common.family.section_of) are taken one after another, longest
// rows first, so that the blocks end together.
//
// config.cuh is the kernel's own: the tile, the features, and its Launch.
#pragma once
#include "config.cuh"
#include "ptx/memory.cuh"

// A tile of query rows: its first row, and the sequence it belongs to. `query_start` and `key_start` are where that
// sequence lies in its tensors, `plane` is their batch: 0 where packed. Keys [first, last) come in tiles.
struct Work {
  int row, head, batch;
  int plane, queries, keys, query_start, key_start;
  int right, left, first, last;

  __device__ __forceinline__ bool sees_nothing() const { return first == last; }
};

constexpr unsigned kNoTile = ~0u;

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
  work.first = nothing ? 0 : static_cast<unsigned>(begin) / kKeys;
  work.last = nothing ? 0 : static_cast<unsigned>(end + kKeys - 1) / kKeys;
  return work;
}
