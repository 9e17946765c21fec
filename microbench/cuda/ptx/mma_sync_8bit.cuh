// mma.sync on 8-bit numbers: integers (sm_80) with s32 accumulators, and fp8 (sm_89) with f32 or f16 ones. A is 16 x K,
// row-major, B is K x 8, column-major. The fragments are those of mma_sync.cuh with P = 4 elements to a word; d is laid
// out alike for every type.
//
//   mma_m16n8k32_s8(d, a, b)         a and b signed;  _u8 both unsigned;  _s8_u8 and _u8_s8 mixed, A named first
//   mma_m16n8k32_s8_sat(d, a, b)     a sum that leaves s32 stays at its end; without _sat it wraps
//   mma_m16n8k32_e4m3(d, a, b)       a and b alike;  _e5m2;  _e4m3_e5m2 and _e5m2_e4m3 mixed, A named first
//   mma_m16n8k16_...                 the same with a of two words and b of one
//
// Integers are one IMMA from sm_80 to sm_120a. fp8 is one QMMA on sm_89 and sm_120a; sm_90a, sm_100a and sm_103a unpack
// it to f16 and run two HMMA, as their own fp8 is that of wgmma and tcgen05 (SASS of NVRTC 12.9).
#pragma once

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/mma_sync_8bit.hpp"
#else

namespace ptx {

// Four words of accumulators: C is their constraint, "+r" or "+f".
#define PTX_MMA_K16(NAME, TEXT, D_TYPE, C)                                                                             \
  __device__ __forceinline__ void mma_m16n8k16_##NAME(D_TYPE(&d)[4], const unsigned (&a)[2], const unsigned (&b)[1]) { \
    asm volatile("mma.sync.aligned.m16n8k16.row.col" TEXT " {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"       \
                 : C(d[0]), C(d[1]), C(d[2]), C(d[3])                                                                  \
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));                                                                   \
  }

#define PTX_MMA_K32(NAME, TEXT, D_TYPE, C)                                                                             \
  __device__ __forceinline__ void mma_m16n8k32_##NAME(D_TYPE(&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) { \
    asm volatile("mma.sync.aligned.m16n8k32.row.col" TEXT                                                              \
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                    \
                 : C(d[0]), C(d[1]), C(d[2]), C(d[3])                                                                  \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                                  \
  }

#define PTX_MMA_INTEGER(NAME, A, B)                                      \
  PTX_MMA_K16(NAME, ".s32." #A "." #B ".s32", int, "+r")                 \
  PTX_MMA_K32(NAME, ".s32." #A "." #B ".s32", int, "+r")                 \
  PTX_MMA_K16(NAME##_sat, ".satfinite.s32." #A "." #B ".s32", int, "+r") \
  PTX_MMA_K32(NAME##_sat, ".satfinite.s32." #A "." #B ".s32", int, "+r")

PTX_MMA_INTEGER(s8, s8, s8)
PTX_MMA_INTEGER(u8, u8, u8)
PTX_MMA_INTEGER(s8_u8, s8, u8)
PTX_MMA_INTEGER(u8_s8, u8, s8)
#undef PTX_MMA_INTEGER

// Accumulators of f16, two to a word.
#define PTX_MMA_F16_SUMS(NAME, A, B)                                                                           \
  __device__ __forceinline__ void mma_m16n8k16_##NAME(unsigned (&d)[2], const unsigned (&a)[2],                \
                                                      const unsigned (&b)[1]) {                                \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16." #A "." #B ".f16 {%0, %1}, {%2, %3}, {%4}, {%0, %1};" \
                 : "+r"(d[0]), "+r"(d[1])                                                                      \
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));                                                           \
  }                                                                                                            \
  __device__ __forceinline__ void mma_m16n8k32_##NAME(unsigned (&d)[2], const unsigned (&a)[4],                \
                                                      const unsigned (&b)[2]) {                                \
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f16." #A "." #B                                            \
                 ".f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"                                        \
                 : "+r"(d[0]), "+r"(d[1])                                                                      \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                          \
  }

#define PTX_MMA_FP8(NAME, A, B)                            \
  PTX_MMA_K16(NAME, ".f32." #A "." #B ".f32", float, "+f") \
  PTX_MMA_K32(NAME, ".f32." #A "." #B ".f32", float, "+f") \
  PTX_MMA_F16_SUMS(NAME, A, B)

PTX_MMA_FP8(e4m3, e4m3, e4m3)
PTX_MMA_FP8(e5m2, e5m2, e5m2)
PTX_MMA_FP8(e4m3_e5m2, e4m3, e5m2)
PTX_MMA_FP8(e5m2_e4m3, e5m2, e4m3)
#undef PTX_MMA_FP8
#undef PTX_MMA_F16_SUMS
#undef PTX_MMA_K32
#undef PTX_MMA_K16

}  // namespace ptx

#endif
