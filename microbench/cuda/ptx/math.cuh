// Arithmetic as single instructions: what the probe names is what ptxas must emit.
#pragma once

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/math.hpp"
#else

namespace ptx {

__device__ __forceinline__ float ffma(float a, float b, float c) {
  float d;
  asm volatile("fma.rn.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(a), "f"(b), "f"(c));
  return d;
}

// MUFU.EX2 alone: without .ftz the compiler adds a multiply on either side for denormals.
__device__ __forceinline__ float ex2(float x) {
  float y;
  asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace ptx

#endif
