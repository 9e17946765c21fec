// mma.sync m8n8k4 of sm_70 (HMMA.884; later targets run a software routine): a warp makes four products of 8 x 8 x 4
// at once, one for each quad pair: lanes 4q to 4q + 3 and 16 + 4q to 19 + 4q. With t = lane % 4 and h = 1 for lanes 16
// and up, i the number of the 16-bit element in the fragment (PTX ISA, 'Matrix fragments for mma.m8n8k4'):
//
//   A row-major     a[i] row t + 4h    k i             B column-major  b[i] k i  column t + 4h
//   A column-major  a[i] row i + 4h    k t             B row-major     b[i] k t  column i + 4h
//
//   d in f16        d[i] row t + 4h    column i
//   d in f32        d[i] row (t & 1) + (i & 2) + 4h    column (i & 4) + (t & 2) + (i & 1)
//
// The lower half of a word holds the lower i. Accumulators of f32 are a float each, those of f16 two to a word.
#pragma once

namespace ptx {

enum class Order { row, col };

}  // namespace ptx

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/mma_sm70.hpp"
#else

namespace ptx {

// MMA(A, B) is the instruction in one choice of orders.
#define PTX_BY_ORDER(MMA)                 \
  if (A == Order::row && B == Order::col) \
    MMA(row, col);                        \
  else if (A == Order::row)               \
    MMA(row, row);                        \
  else if (B == Order::col)               \
    MMA(col, col);                        \
  else                                    \
    MMA(col, row);

#define PTX_MMA_F32(A, B)                                                                                       \
  asm volatile("mma.sync.aligned.m8n8k4." #A "." #B                                                             \
               ".f32.f16.f16.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9}, {%10, %11}, "                      \
               "{%0, %1, %2, %3, %4, %5, %6, %7};"                                                              \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]) \
               : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]))
#define PTX_MMA_F16(A, B)                                                                 \
  asm volatile("mma.sync.aligned.m8n8k4." #A "." #B                                       \
               ".f16.f16.f16.f16 {%0, %1, %2, %3}, {%4, %5}, {%6, %7}, {%0, %1, %2, %3};" \
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                           \
               : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]))

template <Order A, Order B>
__device__ __forceinline__ void mma_m8n8k4(float (&d)[8], const unsigned (&a)[2], const unsigned (&b)[2]) {
  PTX_BY_ORDER(PTX_MMA_F32)
}
template <Order A, Order B>
__device__ __forceinline__ void mma_m8n8k4(unsigned (&d)[4], const unsigned (&a)[2], const unsigned (&b)[2]) {
  PTX_BY_ORDER(PTX_MMA_F16)
}
#undef PTX_MMA_F16
#undef PTX_MMA_F32
#undef PTX_BY_ORDER

}  // namespace ptx

#endif
