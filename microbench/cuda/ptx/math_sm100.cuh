// Arithmetic that sm_100a has as one instruction, and every other architecture as two. A header of its own: nothing that
// the kernels of Volta and Turing include asks for the architecture, so that their source is the same on any GPU.
#pragma once
#include "ptx/math.cuh"

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/math_sm100.hpp"
#else

namespace ptx {

// Two f32 at once, each rounded as the scalar is: one instruction on sm_100a and sm_103a, two elsewhere. PTX has it for
// sm_120a as well, where ptxas writes two.
#if __CUDA_ARCH__ >= 1000
#define PTX_TWO(NAME, TEXT)                                                          \
  __device__ __forceinline__ float2 NAME(float2 a, float2 b) {                       \
    float2 d;                                                                        \
    asm volatile("{ .reg .b64 x, y; mov.b64 x, {%2, %3}; mov.b64 y, {%4, %5}; " TEXT \
                 " x, x, y; "                                                        \
                 "mov.b64 {%0, %1}, x; }"                                            \
                 : "=f"(d.x), "=f"(d.y)                                              \
                 : "f"(a.x), "f"(a.y), "f"(b.x), "f"(b.y));                          \
    return d;                                                                        \
  }
PTX_TWO(fadd2, "add.rn.f32x2")
PTX_TWO(fmul2, "mul.rn.f32x2")
#undef PTX_TWO

__device__ __forceinline__ float2 ffma2(float2 a, float2 b, float2 c) {
  float2 d;
  asm volatile(
      "{ .reg .b64 x, y, z; mov.b64 x, {%2, %3}; mov.b64 y, {%4, %5}; mov.b64 z, {%6, %7}; fma.rn.f32x2 x, x, y, z; "
      "mov.b64 {%0, %1}, x; }"
      : "=f"(d.x), "=f"(d.y)
      : "f"(a.x), "f"(a.y), "f"(b.x), "f"(b.y), "f"(c.x), "f"(c.y));
  return d;
}
#else
// __fadd_rn and __fmul_rn are never fused with what follows.
__device__ __forceinline__ float2 fadd2(float2 a, float2 b) { return {__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y)}; }
__device__ __forceinline__ float2 fmul2(float2 a, float2 b) { return {__fmul_rn(a.x, b.x), __fmul_rn(a.y, b.y)}; }
__device__ __forceinline__ float2 ffma2(float2 a, float2 b, float2 c) {
  return {ffma(a.x, b.x, c.x), ffma(a.y, b.y, c.y)};
}
#endif

// The largest and smallest of three; a NaN loses to a number. FMNMX3 on sm_100a and sm_103a, two FMNMX elsewhere.
#if __CUDA_ARCH__ >= 1000
#define PTX_OF_THREE(NAME, TEXT)                                              \
  __device__ __forceinline__ float NAME(float a, float b, float c) {          \
    float d;                                                                  \
    asm volatile(TEXT " %0, %1, %2, %3;" : "=f"(d) : "f"(a), "f"(b), "f"(c)); \
    return d;                                                                 \
  }
PTX_OF_THREE(fmax3, "max.f32")
PTX_OF_THREE(fmin3, "min.f32")
#undef PTX_OF_THREE
#else
__device__ __forceinline__ float fmax3(float a, float b, float c) { return fmaxf(fmaxf(a, b), c); }
__device__ __forceinline__ float fmin3(float a, float b, float c) { return fminf(fminf(a, b), c); }
#endif

}  // namespace ptx

#endif
