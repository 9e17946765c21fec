// Tensor memory (sm_100a): 128 lanes of 512 columns of 32 bits for each SM, got and given back by columns. An address
// is lane << 16 | column; an allocation spans all lanes.
//
// One whole warp allocates, by `columns`, a power of two from 32 to 512; it waits while other blocks of the SM hold too
// many. The address goes to shared memory, for the others to read after a barrier. Every allocation must be given back
// before the block ends. `Group` is the number of blocks whose tensor cores work together, 1 or 2, and the same for all
// tcgen05 instructions of a kernel; with 2, a warp of each block of the pair takes part.
#pragma once

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/tcgen05_alloc.hpp"
#else
#include "ptx/tcgen05_group.cuh"

namespace ptx {

template <int Group = 1>
__device__ __forceinline__ void tcgen05_alloc(unsigned shared, unsigned columns) {
  PTX_TCGEN05("tcgen05.alloc", ".sync.aligned.shared::cta.b32 [%0], %1;", "r"(shared), "r"(columns));
}

template <int Group = 1>
__device__ __forceinline__ void tcgen05_dealloc(unsigned address, unsigned columns) {
  PTX_TCGEN05("tcgen05.dealloc", ".sync.aligned.b32 %0, %1;", "r"(address), "r"(columns));
}

// This block allocates no more: others of its SM may.
template <int Group = 1>
__device__ __forceinline__ void tcgen05_relinquish() {
  PTX_TCGEN05("tcgen05.relinquish_alloc_permit", ".sync.aligned;", );
}

}  // namespace ptx

#endif
