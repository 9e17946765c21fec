// Arithmetic as single instructions: what the probe names is what ptxas must emit. Errors of the approximations are
// those of the PTX ISA, at most.
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

// The larger one, NaN where either is (sm_80).
__device__ __forceinline__ float max_nan(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}

#define PTX_PACKED(NAME, TEXT)                           \
  __device__ __forceinline__ unsigned NAME(unsigned x) { \
    unsigned y;                                          \
    asm volatile(TEXT " %0, %1;" : "=r"(y) : "r"(x));    \
    return y;                                            \
  }

// Two 16-bit floats in a word, one after the other (two MUFU and a PRMT): 2^x to 2^-9.9 relative (f16, sm_75), 2^-7
// (bf16, sm_90).
PTX_PACKED(ex2_f16x2, "ex2.approx.f16x2")
PTX_PACKED(ex2_bf16x2, "ex2.approx.ftz.bf16x2")

// MUFU.TANH (sm_75): 2^-11 relative; two to a word 2^-10.987 absolute (f16), 2^-8 (bf16, sm_90).
__device__ __forceinline__ float tanh(float x) {
  float y;
  asm volatile("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
PTX_PACKED(tanh_f16x2, "tanh.approx.f16x2")
PTX_PACKED(tanh_bf16x2, "tanh.approx.bf16x2")
#undef PTX_PACKED

}  // namespace ptx

#endif
