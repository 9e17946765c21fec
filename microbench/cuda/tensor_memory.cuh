// Tensor memory for a probe: all of it, got by the first warp, with one mbarrier beside the address.
#pragma once
#include "ptx/cluster.cuh"
#include "ptx/memory.cuh"
#include "ptx/tcgen05.cuh"

constexpr unsigned kColumns = 512;

// The threads of a block, or of a pair of blocks whose tensor cores work together.
template <int Group>
__device__ __forceinline__ void everybody() {
  if constexpr (Group == 2)
    ptx::cluster_sync();
  else
    __syncthreads();
}

struct TensorMemory {
  unsigned slot, memory;

  __device__ __forceinline__ unsigned bar() const { return slot + 8; }
  // Where this thread's warp reaches: its quarter of the lanes.
  __device__ __forceinline__ unsigned mine() const { return memory + (warp() % 4 * 32 << 16); }
  // From one lane to all, so that ptxas knows an address that follows from it to be one for the warp.
  __device__ __forceinline__ static unsigned warp() { return __shfl_sync(~0u, threadIdx.x / 32, 0); }

  template <int Group = 1>
  __device__ __forceinline__ void close() const {
    ptx::tcgen05_fence_before();
    everybody<Group>();
    if (warp() == 0) ptx::tcgen05_dealloc<Group>(memory, kColumns);
  }
};

// `slot`: 16 bytes of shared memory. All threads call it together, of a pair those of both blocks.
template <int Group = 1>
__device__ __forceinline__ TensorMemory open_tensor_memory(unsigned slot) {
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(slot + 8, 1);
    ptx::fence_mbarrier_init();
  }
  if (TensorMemory::warp() == 0) {
    ptx::tcgen05_alloc<Group>(slot, kColumns);
    ptx::tcgen05_relinquish<Group>();
  }
  everybody<Group>();
  return {slot, ptx::load_shared(slot)};
}
