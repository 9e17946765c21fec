// The next tile of rows a block works on.
//
// Blocks stay, one on each SM. The producer takes the next tile from a counter in global memory while the loads of the
// last one are under way, divides its number into row, head and batch, and hands these to the consumers through two
// slots of shared memory.
//
// In a cluster the first block takes them, and tells the second one their numbers (pairs.cuh of the kernel).
#pragma once
#include "ptx/mbarrier.cuh"
#include "ptx/memory.cuh"
#include "work.cuh"

// A position in a ring: how many have gone before. One register, where registers are short.
template <unsigned Length>
struct Ring {
  unsigned count = 0;

  __device__ __forceinline__ unsigned stage() const { return count % Length; }
  __device__ __forceinline__ unsigned parity() const { return count / Length & 1; }
  __device__ __forceinline__ void advance() { ++count; }
};

using Slot = Ring<2>;  // of the two that carry tiles

__device__ __forceinline__ int take_tile(const Launch& launch) {
  return launch.blocks / kCluster + atomicAdd(launch.counters, 1);
}

// The last block leaves the counters as the next launch on this stream expects them.
__device__ __forceinline__ void put_counters_back(const Launch& launch) {
  __threadfence();
  if (atomicAdd(launch.counters + 1, 1) != gridDim.x / kCluster - 1) return;
  __threadfence();
  launch.counters[0] = 0;
  launch.counters[1] = 0;
}

__device__ __forceinline__ void publish(const Rooms& at, Slot& slot, const ptx::vec4& tile) {
  ptx::mbarrier_wait(at.tile_empty + 8 * slot.stage(), slot.parity() ^ 1);
  ptx::store_shared4(at.tile + 16 * slot.stage(), tile);
  ptx::mbarrier_arrive(at.tile_full + 8 * slot.stage());
  slot.advance();
}

// By a whole warp.
__device__ __forceinline__ ptx::vec4 receive(const Rooms& at, Slot& slot, int lane) {
  ptx::mbarrier_wait(at.tile_full + 8 * slot.stage(), slot.parity());
  ptx::vec4 tile{0, 0, 0, 0};
  if (lane == 0) tile = ptx::load_shared4(at.tile + 16 * slot.stage());
  // An arrival does not wait for loads, but this one for the shuffles before it. ptxas puts it ahead of them for sm_100a
  // and where blocks share keys on sm_90a: there it hangs on what was read. Asked everywhere, builds that were timed would
  // be ordered anew.
  const bool read = !kSlotsAwaited || tile.w == 0;
  tile = {__shfl_sync(~0u, tile.x, 0), __shfl_sync(~0u, tile.y, 0), __shfl_sync(~0u, tile.z, 0), 0};
  if (lane == 0 && read) ptx::mbarrier_arrive(at.tile_empty + 8 * slot.stage());
  slot.advance();
  return tile;
}

// By one thread. An arrival does not wait for loads: this one hangs on what was read.
__device__ __forceinline__ ptx::vec4 receive_alone(const Rooms& at, Slot& slot) {
  ptx::mbarrier_wait(at.tile_full + 8 * slot.stage(), slot.parity());
  const ptx::vec4 tile = ptx::load_shared4(at.tile + 16 * slot.stage());
  if (tile.w == 0) ptx::mbarrier_arrive(at.tile_empty + 8 * slot.stage());
  slot.advance();
  return {tile.x, tile.y, tile.z, 0};
}
