// Two blocks of a cluster that go over the same tiles of keys: a pair. They take the same rows of two neighbouring heads, or
// neighbouring tiles of rows of one (shared_keys.cuh). The first block takes tiles off the counter, and tells the second
// one their numbers.
#pragma once
#include "ptx/cluster.cuh"
#include "schedule.cuh"

constexpr unsigned kTaker = 0, kHearer = 1;  // their ranks
constexpr unsigned short kBothBlocks = 3;

__device__ __forceinline__ unsigned other_block() { return ptx::cluster_rank() ^ 1; }

__device__ __forceinline__ bool takes_tiles() { return !kTwoBlocks || ptx::cluster_rank() == kTaker; }

// All threads of this block, or of both, at the begin. Nothing is told by it but how mbarriers begin, for which their own
// fence stands: an arrival that releases all that a thread wrote takes an H100 0.7 us, and this one 0.05.
__device__ __forceinline__ void meet() {
  if constexpr (kTwoBlocks) {
    ptx::cluster_arrive_relaxed();
    ptx::cluster_wait();
  } else {
    __syncthreads();
  }
}

// At the end no block may be gone while copies and arrivals of the other one are under way.
__device__ __forceinline__ void part_ways() {
  if constexpr (kTwoBlocks) ptx::cluster_sync();
}

// The number of the next tile, between the producers of both blocks: told as soon as it is taken, heard when it is needed.
// Builds without pairs have no such member: it would move registers.
template <bool Paired>
struct Numbers {
  __device__ __forceinline__ void tell(const Rooms&, int) {}
  __device__ __forceinline__ int hear(const Rooms&) { return 0; }
};

template <>
struct Numbers<true> {
  Ring<1> turn{};

  __device__ __forceinline__ void tell(const Rooms& at, int tile) {
    ptx::mbarrier_wait(at.number_empty, turn.parity() ^ 1);
    ptx::store_async(ptx::map_shared(at.number, kHearer), tile, ptx::map_shared(at.number_full, kHearer));
    turn.advance();
  }

  __device__ __forceinline__ int hear(const Rooms& at) {
    ptx::mbarrier_arrive_expect(at.number_full, 4);
    ptx::mbarrier_wait(at.number_full, turn.parity());
    const int tile = ptx::load_shared(at.number);
    // An arrival does not wait for loads: behind stores of outputs this one took so long that the next number was read in
    // its place, and the blocks of a pair went on with unlike tiles (H100 and H200, misheard_numbers.csv). One that hangs on
    // what was read waits.
    if (tile >= 0) ptx::mbarrier_arrive_remote(ptx::map_shared(at.number_empty, kTaker));
    turn.advance();
    return tile;
  }
};
