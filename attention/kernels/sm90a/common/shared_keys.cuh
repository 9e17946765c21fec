// K and V that the blocks of a pair share, which take neighbouring tiles of rows of one head: each block fetches half of the
// rows of a tile, which lands in both (multicast).
//
// It halves what the L2 gives. Where power sets the clock, of long rows at head dim 256, that is time: 16384 tokens took an
// H200 0.8 % less, causal 2.3, and 8192 of 16 heads 0.3 and 1.9. Shorter rows lose what blocks wait for each other at every
// tile, and heads of a group have their keys in the L2 as it is (shared_keys.csv, shared_keys_2.csv).
//
// Both blocks go over the keys that the later rows see. A stage is empty when the consumers of both have read it.
#pragma once
#include "pairs.cuh"
#include "ptx/multicast.cuh"
#include "work.cuh"

constexpr int kReaders = kKeysOfTwo ? kCluster : 1;  // blocks that read what lands in a stage

// Of a tile of kKeys rows in panels, the half that this block fetches for both.
template <class Panels>
__device__ __forceinline__ void load_half(unsigned to, const ptx::TensorMap* map, unsigned full, int column, int row,
                                          int head, int batch) {
  constexpr int kHalf = kKeys / kCluster;
  const int begin = ptx::cluster_rank() * kHalf;
#pragma unroll
  for (int panel = 0; panel < Panels::kCount; ++panel)
    ptx::tensor_load_multicast(to + (panel * kKeys + begin) * Panels::kSpan, map, full, kBothBlocks,
                               column + panel * Panels::kWidth, row + begin, head, batch);
}

// By one lane of a warp that has read a stage: the other block may fetch into it too.
__device__ __forceinline__ void tell_other(unsigned empty) {
  if constexpr (kKeysOfTwo) ptx::mbarrier_arrive_remote(ptx::map_shared(empty, other_block()));
}
