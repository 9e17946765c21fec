// How a kernel that reads the clock hands its readings over: measure.py takes the last argument to be `clocks`, two
// readings a warp, warps numbered through all blocks.
#pragma once
#include "ptx/clock.cuh"

__device__ __forceinline__ void report(long long* clocks, long long start, long long end) {
  if (threadIdx.x % 32) return;
  int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  clocks[2 * warp] = start;
  clocks[2 * warp + 1] = end;
}
