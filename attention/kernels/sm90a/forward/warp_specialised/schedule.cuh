// Which tile of rows a block works on next, and which keys that tile sees. Producer and consumers ask alike.
//
// Blocks stay, one on each SM, and take every gridDim.x-th tile. Without a mask, neighbours in time are rows of the
// same head, so that their K and V meet in the L2. Causal rows see different numbers of keys: sections of heads that
// fit the L2 are taken one after another, longest rows first, and every other round runs through the blocks backwards,
// so that no block collects the longer tile of every round.
#pragma once
#include "config.cuh"

struct Work {
  int row, head, batch;  // `row`: the first query row of the tile
};

// Tiles of keys [first, last), of which those from `masked` on need a mask for some row of the tile.
struct KeyTiles {
  int first, last;
};

__device__ __forceinline__ int tile_of_round(int round) {
  const int grid = gridDim.x, block = blockIdx.x;
  return round * grid + (kCausal && round % 2 ? grid - 1 - block : block);
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
  return {row_tile * kTileRows, pair % launch.heads, pair / launch.heads};
}

__device__ __forceinline__ KeyTiles keys_of(const Launch& launch, const Work& work) {
  int end = launch.keys, begin = 0;
  if (kCausal) end = min(end, work.row + kTileRows + launch.right);
  if (kWindow) begin = max(0, work.row + launch.left);
  if (end <= begin) return {0, 0};
  return {begin / kKeys, (end + kKeys - 1) / kKeys};
}
