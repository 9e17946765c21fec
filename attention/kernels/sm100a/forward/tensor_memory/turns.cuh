// The order of products. A turn is one query tile against one tile of keys, keys running downwards: with two query
// tiles they alternate, with one its tiles of keys follow one another. Scores of turn t are multiplied two turns ahead
// of p V, into the buffer that turn t - 2 has left: while one softmax works on a turn, the tensor cores do another's.
//
//   Q K(0)  Q K(1)  |  P V(0)  Q K(2)  |  P V(1)  Q K(3)  |  ...
//
// K and V share a ring, in the order in which a turn first needs them: so many tiles of K go ahead of V.
#pragma once
#include "ptx/elect.cuh"
#include "schedule.cuh"

constexpr int kTurnsAhead = 2, kTilesAhead = kTurnsAhead / kQueryTiles;

using Turn = Ring<2>;  // of scores' buffers and their barriers

__device__ __forceinline__ int tiles_of(const Work& work) { return work.last - work.first; }

// By a whole warp: one arrival for all of its threads, behind what they did.
__device__ __forceinline__ void arrive_together(unsigned bar) {
  __syncwarp();
  if (ptx::elect_one()) ptx::mbarrier_arrive(bar);
}
