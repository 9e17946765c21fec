// Additions and integer multiply-adds as single instructions, for chains that nothing may fold. (ffma is in math.cuh.)
#pragma once

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/alu.hpp"
#else

namespace ptx {

__device__ __forceinline__ float fadd(float a, float b) {
  float d;
  asm volatile("add.rn.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b));
  return d;
}

__device__ __forceinline__ unsigned imad(unsigned a, unsigned b, unsigned c) {
  unsigned d;
  asm volatile("mad.lo.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}

}  // namespace ptx

#endif
