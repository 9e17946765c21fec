// cp.async (sm_80): one thread copies a few bytes from global to shared memory, past its registers. A thread closes
// what it asked for into a group and waits for its own groups, oldest first; a barrier then shows the data to others.
// Nobody may touch the destination in between.
#pragma once

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/cp_async.hpp"
#else

namespace ptx {

// 16 bytes, through the L2 only. `used` of them are read, the rest becomes zero: 0 masks a row that does not exist.
__device__ __forceinline__ void cp_async16(unsigned shared, const void* global, unsigned used = 16) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(used) : "memory");
}

// The same, where a miss of the L2 brings all 128 bytes of the line.
__device__ __forceinline__ void cp_async16_line(unsigned shared, const void* global, unsigned used = 16) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(used)
               : "memory");
}

// 4 or 8 bytes, through the L1.
template <int Bytes>
__device__ __forceinline__ void cp_async(unsigned shared, const void* global) {
  static_assert(Bytes == 4 || Bytes == 8, "cp.async.ca moves 4 or 8 bytes here; cp_async16 moves 16");
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared), "l"(global), "n"(Bytes) : "memory");
}

__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Wait until at most Pending of this thread's groups are unfinished. An empty group counts as one.
template <int Pending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

}  // namespace ptx

#endif
