// Loads of what nothing writes while the kernel runs, 1 to 8 bytes: LDG.CONSTANT. The compiler may move and join them.
#pragma once

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/read_only.hpp"
#else

namespace ptx {

__device__ __forceinline__ unsigned char read_only(const unsigned char* at) {
  unsigned value;
  asm("ld.global.nc.u8 %0, [%1];" : "=r"(value) : "l"(at));
  return value;
}

__device__ __forceinline__ unsigned short read_only(const unsigned short* at) {
  unsigned short value;
  asm("ld.global.nc.u16 %0, [%1];" : "=h"(value) : "l"(at));
  return value;
}

__device__ __forceinline__ unsigned read_only(const unsigned* at) {
  unsigned value;
  asm("ld.global.nc.u32 %0, [%1];" : "=r"(value) : "l"(at));
  return value;
}

__device__ __forceinline__ unsigned long long read_only(const unsigned long long* at) {
  unsigned long long value;
  asm("ld.global.nc.u64 %0, [%1];" : "=l"(value) : "l"(at));
  return value;
}

}  // namespace ptx

#endif
