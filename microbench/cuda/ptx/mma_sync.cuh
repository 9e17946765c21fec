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

#define PTX_MMA_M16N8K16(TYPE)                                                                                         \
  __device__ __forceinline__ void mma_m16n8k16_##TYPE(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) { \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." #TYPE "." #TYPE                                              \
                 ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                                      \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                                  \
  }

PTX_MMA_M16N8K16(bf16)
PTX_MMA_M16N8K16(f16)
#undef PTX_MMA_M16N8K16

#define PTX_MMA_HALF_DEPTH(SHAPE, TYPE)                                                       \
  __device__ __forceinline__ void mma_##SHAPE##_##TYPE(float (&d)[4], const unsigned (&a)[2], \
                                                       const unsigned (&b)[1]) {              \
    asm volatile("mma.sync.aligned." #SHAPE ".row.col.f32." #TYPE "." #TYPE                   \
                 ".f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"                   \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                             \
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));                                          \
  }

PTX_MMA_HALF_DEPTH(m16n8k8, f16)
PTX_MMA_HALF_DEPTH(m16n8k8, bf16)
PTX_MMA_HALF_DEPTH(m16n8k4, tf32)
#undef PTX_MMA_HALF_DEPTH

__device__ __forceinline__ void mma_m16n8k8_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Accumulators of f16: half the registers, and a sum rounded to 11 bits at every instruction.
__device__ __forceinline__ void mma_m16n8k16_f16(unsigned (&d)[2], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
               : "+r"(d[0]), "+r"(d[1])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void mma_m16n8k8_f16(unsigned (&d)[2], const unsigned (&a)[2], const unsigned (&b)[1]) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%0, %1};"
               : "+r"(d[0]), "+r"(d[1])
               : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}

}  // namespace ptx

#endif
