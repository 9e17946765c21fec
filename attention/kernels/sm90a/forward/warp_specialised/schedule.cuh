// The next tile of rows a block works on.
//
// Blocks stay, one on each SM. The producer takes the next tile from a counter in global memory while the loads of the
// last one are under way, and hands its number to the consumers through two slots of shared memory.
#pragma once
#include "ptx/mbarrier.cuh"
#include "ptx/memory.cuh"
#include "work.cuh"

// One of the two slots that carry tile numbers, and the parity of its phase.
struct Slot {
  int index = 0;
  unsigned parity = 0;

  __device__ __forceinline__ void advance() {
    parity ^= index;
    index ^= 1;
  }
};

__device__ __forceinline__ void publish_tile(const Rooms& at, Slot& slot, int tile) {
  ptx::mbarrier_wait(at.tile_empty + 8 * slot.index, slot.parity ^ 1);
  ptx::store_shared(at.tile + 4 * slot.index, tile);
  ptx::mbarrier_arrive(at.tile_full + 8 * slot.index);
  slot.advance();
}

// By a whole warp.
__device__ __forceinline__ int receive_tile(const Rooms& at, Slot& slot, int lane) {
  ptx::mbarrier_wait(at.tile_full + 8 * slot.index, slot.parity);
  const int tile = __shfl_sync(~0u, lane ? 0 : static_cast<int>(ptx::load_shared(at.tile + 4 * slot.index)), 0);
  if (lane == 0) ptx::mbarrier_arrive(at.tile_empty + 8 * slot.index);
  slot.advance();
  return tile;
}

__device__ __forceinline__ int take_tile(const Launch& launch) { return gridDim.x + atomicAdd(launch.counters, 1); }

// The last block leaves the counters as the next launch on this stream expects them.
__device__ __forceinline__ void put_counters_back(const Launch& launch) {
  if (atomicAdd(launch.counters + 1, 1) != gridDim.x - 1) return;
  launch.counters[0] = 0;
  launch.counters[1] = 0;
}
