// Conversions, rounded to nearest even: f32 to words of 16-bit floats (F2FP on sm_80 and later), to fp8 and to tf32,
// and back. The first value lies in the lower bits.
#pragma once

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/convert.hpp"
#else

namespace ptx {

__device__ __forceinline__ unsigned pack_f16(float low, float high) {
  // PTX for sm_70 converts one at a time; ptxas makes one F2FP of both from sm_80 on, as of cvt.rn.f16x2.f32.
  unsigned word;
  asm("{ .reg .f16 lo, hi; cvt.rn.f16.f32 lo, %1; cvt.rn.f16.f32 hi, %2; mov.b32 %0, {lo, hi}; }"
      : "=r"(word)
      : "f"(low), "f"(high));
  return word;
}

__device__ __forceinline__ unsigned pack_bf16(float low, float high) {
  unsigned word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

__device__ __forceinline__ float2 unpack_f16(unsigned word) {
  float2 v;
  asm("{ .reg .f16 lo, hi; mov.b32 {lo, hi}, %2; cvt.f32.f16 %0, lo; cvt.f32.f16 %1, hi; }"
      : "=f"(v.x), "=f"(v.y)
      : "r"(word));
  return v;
}

// A bf16 is the upper half of an f32.
__device__ __forceinline__ float2 unpack_bf16(unsigned word) {
  return {__uint_as_float(word << 16), __uint_as_float(word & 0xFFFF0000)};
}

// tf32 as mma reads it, 10 bits of mantissa, in PTX from sm_80 on. To nearest, ties away from zero. No instruction of
// its own: ptxas adds half of the last place where the number is finite, and cuts.
__device__ __forceinline__ unsigned round_tf32(float x) {
  unsigned word;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(x));
  return word;
}

// fp8 (sm_89). Two f32, or an f16x2, become two bytes; what is too large, infinities too, becomes the largest number
// (448 in e4m3, 57344 in e5m2), and every NaN 0x7F. Back to f16x2 is exact.
#define PTX_FP8(TYPE)                                                                       \
  __device__ __forceinline__ unsigned short pack_##TYPE(float low, float high) {            \
    unsigned short pair;                                                                    \
    asm("cvt.rn.satfinite." #TYPE "x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low)); \
    return pair;                                                                            \
  }                                                                                         \
  __device__ __forceinline__ unsigned short f16x2_to_##TYPE(unsigned f16x2) {               \
    unsigned short pair;                                                                    \
    asm("cvt.rn.satfinite." #TYPE "x2.f16x2 %0, %1;" : "=h"(pair) : "r"(f16x2));            \
    return pair;                                                                            \
  }                                                                                         \
  __device__ __forceinline__ unsigned TYPE##_to_f16x2(unsigned short pair) {                \
    unsigned f16x2;                                                                         \
    asm("cvt.rn.f16x2." #TYPE "x2 %0, %1;" : "=r"(f16x2) : "h"(pair));                      \
    return f16x2;                                                                           \
  }

PTX_FP8(e4m3)
PTX_FP8(e5m2)
#undef PTX_FP8

}  // namespace ptx

#endif
