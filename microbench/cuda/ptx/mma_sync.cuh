// mma.sync with f32 accumulators: one warp multiplies A (16 x K, row-major) by B (K x 8, column-major). Fragments, with
// g = lane / 4 and t = lane % 4 (PTX ISA, 'Matrix fragments for mma.m16n8k16' and the like). The lower half of a word
// holds the lower k.
//
//   d[0], d[1] row g      columns 2t, 2t+1      for every K
//   d[2], d[3] row g + 8  columns 2t, 2t+1
//
//   m16n8k16, f16 and bf16 (sm_80)                              m16n8k8, f16 (sm_75), bf16 (sm_80)
//   a[0] row g      k 2t, 2t+1      b[0] k 2t, 2t+1    column g   a[0] row g      k 2t, 2t+1   b[0] k 2t, 2t+1  column
//   g a[1] row g + 8  k 2t, 2t+1      b[1] k 2t+8, 2t+9  column g   a[1] row g + 8  k 2t, 2t+1 a[2] row g      k 2t+8,
//   2t+9 a[3] row g + 8  k 2t+8, 2t+9                                m16n8k8, tf32 (sm_80): one element a word
//                                                               a[0] row g, a[1] row g + 8, k t; a[2], a[3] k t+4
//                                                               b[0] k t, b[1] k t+4, column g
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

#define PTX_MMA_M16N8K8(TYPE)                                                                                         \
  __device__ __forceinline__ void mma_m16n8k8_##TYPE(float (&d)[4], const unsigned (&a)[2], const unsigned (&b)[1]) { \
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32." #TYPE "." #TYPE                                              \
                 ".f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"                                           \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                                     \
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));                                                                  \
  }

PTX_MMA_M16N8K8(f16)
PTX_MMA_M16N8K8(bf16)
#undef PTX_MMA_M16N8K8

__device__ __forceinline__ void mma_m16n8k8_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

}  // namespace ptx

#endif
