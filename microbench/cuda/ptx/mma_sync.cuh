// mma.sync on floats of 16 bits and tf32: one warp multiplies A (16 x K, row-major) by B (K x 8, column-major) and adds
// d. 8-bit numbers: mma_sync_8bit.cuh.
//
// Fragments, with g = lane / 4, t = lane % 4, P elements to a word (two; tf32 one), the lowest k in the lowest bits
// (PTX ISA, 'Matrix fragments for mma.m16n8k4', 'm16n8k8', 'm16n8k16' and 'm16n8k32'):
//
//   a[w], element e    row g + 8 (w % 2)    k  4P (w / 2) + P t + e
//   b[w], element e    column g             k  4P w + P t + e
//   d[0], d[1]         row g                columns 2t, 2t + 1
//   d[2], d[3]         row g + 8            the same columns
//
// A row of A has 16 bytes, then A is two words and B one (m16n8k8 of f16 and bf16, m16n8k4 of tf32), or 32 bytes, then
// they are four and two. Accumulators are f32; those of f16 lie two to a word, d[0] row g and d[1] row g + 8.
//
// m16n8k8 of f16: sm_75. All others: sm_80. The lower 13 bits of a tf32 are ignored: see round_tf32 in convert.cuh.
#pragma once

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/mma_sync.hpp"
#else

namespace ptx {

// By the words of A, and of D: C is the constraint of its four words, "+f" or "+r"; two hold sums of f16, which take half
// the registers, and are rounded to 11 bits at every instruction.
#define PTX_MMA_4(SHAPE, NAME, TEXT, D_TYPE, C)                                               \
  __device__ __forceinline__ void mma_##SHAPE##_##NAME(D_TYPE(&d)[4], const unsigned (&a)[4], \
                                                       const unsigned (&b)[2]) {              \
    asm volatile("mma.sync.aligned." #SHAPE ".row.col" TEXT                                   \
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"           \
                 : C(d[0]), C(d[1]), C(d[2]), C(d[3])                                         \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));         \
  }
#define PTX_MMA_2(SHAPE, NAME, TEXT, D_TYPE, C)                                                                    \
  __device__ __forceinline__ void mma_##SHAPE##_##NAME(D_TYPE(&d)[4], const unsigned (&a)[2],                      \
                                                       const unsigned (&b)[1]) {                                   \
    asm volatile("mma.sync.aligned." #SHAPE ".row.col" TEXT " {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};" \
                 : C(d[0]), C(d[1]), C(d[2]), C(d[3])                                                              \
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));                                                               \
  }
#define PTX_MMA_4_F16(SHAPE, NAME, TEXT)                                                                       \
  __device__ __forceinline__ void mma_##SHAPE##_##NAME(unsigned (&d)[2], const unsigned (&a)[4],               \
                                                       const unsigned (&b)[2]) {                               \
    asm volatile("mma.sync.aligned." #SHAPE ".row.col" TEXT " {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};" \
                 : "+r"(d[0]), "+r"(d[1])                                                                      \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                          \
  }
#define PTX_MMA_2_F16(SHAPE, NAME, TEXT)                                                           \
  __device__ __forceinline__ void mma_##SHAPE##_##NAME(unsigned (&d)[2], const unsigned (&a)[2],   \
                                                       const unsigned (&b)[1]) {                   \
    asm volatile("mma.sync.aligned." #SHAPE ".row.col" TEXT " {%0, %1}, {%2, %3}, {%4}, {%0, %1};" \
                 : "+r"(d[0]), "+r"(d[1])                                                          \
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));                                               \
  }

PTX_MMA_4(m16n8k16, bf16, ".f32.bf16.bf16.f32", float, "+f")
PTX_MMA_4(m16n8k16, f16, ".f32.f16.f16.f32", float, "+f")
PTX_MMA_4(m16n8k8, tf32, ".f32.tf32.tf32.f32", float, "+f")
PTX_MMA_2(m16n8k8, bf16, ".f32.bf16.bf16.f32", float, "+f")
PTX_MMA_2(m16n8k8, f16, ".f32.f16.f16.f32", float, "+f")
PTX_MMA_2(m16n8k4, tf32, ".f32.tf32.tf32.f32", float, "+f")
PTX_MMA_4_F16(m16n8k16, f16, ".f16.f16.f16.f16")
PTX_MMA_2_F16(m16n8k8, f16, ".f16.f16.f16.f16")

}  // namespace ptx

#endif
