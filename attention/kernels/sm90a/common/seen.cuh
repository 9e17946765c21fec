// Which tiles of keys a warpgroup's rows see, of those that its block goes over: the first one, keys run downwards, and the
// least.
#pragma once
#include "work.cuh"

__device__ __forceinline__ int at_diagonal(const Work& work, int row) {
  return (min(work.keys, row + kGroupRows + work.right) - 1) / kKeys;
}

__device__ __forceinline__ int first_seen(const Work& work, int row) {
  return kCausal ? min(work.last - 1, max(at_diagonal(work, row), work.first)) : work.last - 1;
}

__device__ __forceinline__ int least_seen(const Work& work, int row, int first) {
  return kWindow ? max(work.first, min(first, (row + work.left) / kKeys)) : work.first;
}
