// Named barriers of a block, and the fence between the generic and the async proxy.
#pragma once

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/barrier.hpp"
#else

namespace ptx {

// Wait until `threads` threads, a multiple of 32, have arrived at barrier `id`, 0 to 15 (0 is __syncthreads).
__device__ __forceinline__ void barrier_sync(unsigned id, unsigned threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// Be counted there, and go on.
__device__ __forceinline__ void barrier_arrive(unsigned id, unsigned threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// The writer of shared memory that wgmma or a bulk copy reads next calls this before the barrier: those read through
// the async proxy.
__device__ __forceinline__ void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

}  // namespace ptx

#endif
