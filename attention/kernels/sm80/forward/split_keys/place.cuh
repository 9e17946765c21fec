// A block's tile of rows, and which part of its keys. It is found once, and kept: what finds it stands before a block's
// first load and, where it was found again behind the last tile, between that and its outputs.
#pragma once
#include "divide.cuh"
#include "work.cuh"

// As divided() of work.cuh, of calls of few queries without most of its divisions.
__device__ __forceinline__ ptx::vec4 tile_of_rows(const Launch& launch, int tile) {
  if (kDealt || launch.row_tiles > 1) return divided(launch, tile);
  const Divided at = divide(tile, launch.heads);
  return {0, static_cast<unsigned>(at.remainder), static_cast<unsigned>(at.quotient), 0};
}

struct Place {
  Work work;  // with all keys
  int count;  // of parts: each has a tile of keys or more, and one is there where rows see nothing

  // The tile, and which of its parts: as cheap to find again as to keep.
  __device__ __forceinline__ static Divided in_grid(const Launch& launch) {
    return divide(blockIdx.x, launch.key_splits);
  }

  __device__ __forceinline__ static Place of(const Launch& launch) {
    const Work work = work_of(launch, tile_of_rows(launch, in_grid(launch).quotient));
    return {work, max(1, min(launch.key_splits, work.last - work.first))};
  }

  // The keys of one part alone.
  __device__ __forceinline__ Work part(int number) const {
    Work mine = work;
    mine.first = begin_of(number);
    mine.last = begin_of(number + 1);
    return mine;
  }

  __device__ __forceinline__ int begin_of(int part) const {
    const int tiles = work.last - work.first;
    return work.first + (tiles == count ? part : divide(tiles * part, count).quotient);
  }
};
