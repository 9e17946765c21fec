// Two f32 to one word of 16-bit floats, rounded to nearest even: F2FP on sm_80 and later.
#pragma once

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/convert.hpp"
#else

namespace ptx {

__device__ __forceinline__ unsigned pack_f16(float low, float high) {
#if __CUDA_ARCH__ >= 800
  unsigned word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
#else
  // sm_70 converts one at a time.
  unsigned word;
  asm("{ .reg .f16 lo, hi; cvt.rn.f16.f32 lo, %1; cvt.rn.f16.f32 hi, %2; mov.b32 %0, {lo, hi}; }"
      : "=r"(word)
      : "f"(low), "f"(high));
  return word;
#endif
}

__device__ __forceinline__ unsigned pack_bf16(float low, float high) {
  unsigned word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

}  // namespace ptx

#endif
