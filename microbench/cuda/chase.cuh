// A pointer chase by one thread per block: a load's result is the next load's address, so a chain of LDG.E.64 with
// nothing between is the latency. The thread goes on where the last launch left it: rings larger than the cache are
// always met cold, smaller ones always warm.
#pragma once
#include "ptx/memory.cuh"
#include "timing.cuh"

// Every thread of the block follows the second word of its lines, which names the line `blockDim.x` places on: together
// they walk the ring once, in its order, a block's width at a time, a thousand times as fast as one thread would. What
// the L2 holds afterwards is what one thread on this SM leaves.
__device__ __forceinline__ void walk_by_block(const ptx::u64* seconds, int steps) {
  ptx::u64 address = seconds[threadIdx.x];
#pragma unroll 1
  for (int i = 0; i < steps; ++i) address = ptx::load(address);
  ptx::settle(address);
}

template <int Length>
__device__ __forceinline__ void chase(ptx::u64* places, int warm_steps, int trips, long long* clocks) {
  if (threadIdx.x) return;
  ptx::u64 address = places[blockIdx.x];
  // L1 does not outlive a launch: a ring that fits it is walked once before the clock is read.
#pragma unroll 1
  for (int i = 0; i < warm_steps; ++i) address = ptx::load(address);
  ptx::settle(address);
  long long start = ptx::clock64();
#pragma unroll 1
  for (int i = 0; i < trips; ++i) {
#pragma unroll
    for (int j = 0; j < Length; ++j) address = ptx::load(address);
  }
  ptx::settle(address);
  long long end = ptx::clock64();
  places[blockIdx.x] = address;
  report(clocks, start, end);
}
