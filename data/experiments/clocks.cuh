// What the experiments share: a warp's two clocks, and where it leaves them.
#pragma once
typedef unsigned long long u64;
typedef unsigned u32;

__device__ __forceinline__ long long now() {
  long long t;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(t)::"memory");
  return t;
}

__device__ __forceinline__ void leave(long long* clocks, long long start) {
  long long end = now();
  clocks[2 * (threadIdx.x / 32)] = start, clocks[2 * (threadIdx.x / 32) + 1] = end;
}
