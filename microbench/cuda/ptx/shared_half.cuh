// Two bytes of shared memory: LDS.U16, by the 32-bit address that it takes.
#pragma once

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/shared_half.hpp"
#else

namespace ptx {

__device__ __forceinline__ unsigned short load_shared_half(unsigned address) {
  unsigned short value;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(value) : "r"(address) : "memory");
  return value;
}

}  // namespace ptx

#endif
