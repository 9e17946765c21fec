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

namespace ptx {

template <int Group = 1>
__device__ __forceinline__ void tcgen05_alloc(unsigned shared, unsigned columns) {
  if constexpr (Group == 1)
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared), "r"(columns)
                 : "memory");
  else
    asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared), "r"(columns)
                 : "memory");
}

template <int Group = 1>
__device__ __forceinline__ void tcgen05_dealloc(unsigned address, unsigned columns) {
  if constexpr (Group == 1)
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns) : "memory");
  else
    asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns) : "memory");
}

// This block allocates no more: others of its SM may.
template <int Group = 1>
__device__ __forceinline__ void tcgen05_relinquish() {
  if constexpr (Group == 1)
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
  else
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;" ::: "memory");
}

}  // namespace ptx

#endif
