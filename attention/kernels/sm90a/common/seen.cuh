// Which tiles of keys a warpgroup's rows see, of those that its block goes over: the first one, keys run downwards, and the
// least.
#pragma once
#include "work.cuh"

// Of a warpgroup whose rows begin with `row`. Where heads share no rows sums are not made of queries: ptxas would order
// them otherwise, and builds that were timed would be others.
__device__ __forceinline__ int last_query(const Work& work, int row) { return work.query_of(row + kGroupRows - 1); }

__device__ __forceinline__ int at_diagonal(const Work& work, int row) {
  if constexpr (kPackGqa)
    return (min(work.keys, last_query(work, row) + 1 + work.right) - 1) / kKeys;
  else
    return (min(work.keys, row + kGroupRows + work.right) - 1) / kKeys;
}

__device__ __forceinline__ int first_seen(const Work& work, int row) {
  return kCausal ? min(work.last - 1, max(at_diagonal(work, row), work.first)) : work.last - 1;
}

__device__ __forceinline__ int least_seen(const Work& work, int row, int first) {
  return kWindow ? max(work.first, min(first, (work.query_of(row) + work.left) / kKeys)) : work.first;
}

// Tiles below this one are seen in full by every row.
__device__ __forceinline__ int seen_whole(const Work& work, int row) {
  if constexpr (kPackGqa)
    return (work.query_of(row) + work.right + 1) / kKeys;
  else
    return (row + work.right + 1) / kKeys;
}

// And those from this one on to their left.
__device__ __forceinline__ int seen_by_all(const Work& work, int row) {
  if constexpr (kPackGqa)
    return (last_query(work, row) + work.left + kKeys - 1) / kKeys;
  else
    return (row + kGroupRows - 1 + work.left + kKeys - 1) / kKeys;
}
