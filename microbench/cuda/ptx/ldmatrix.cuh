// ldmatrix (sm_75) and stmatrix (sm_90): one, two or four 8 x 8 matrices of 16 bits between shared memory and the
// fragments of a warp (PTX ISA, 'ldmatrix').
//
//   Lane 8m + r gives the address of row r of matrix m: 16 bytes, at a multiple of 16.
//   d[m] of lane l holds elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4 of matrix m, the first in the lower half;
//   with trans, of column l / 4: elements (2 (l % 4), l / 4) and (2 (l % 4) + 1, l / 4).
//
// Without trans that is one 8 x 8 quarter of a fragment a of mma_sync.cuh from row-major memory, or of a fragment b
// from column-major memory; with trans the other way round.
#pragma once

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/ldmatrix.hpp"
#else

namespace ptx {

#define PTX_LDMATRIX(NAME, TRANS)                                                            \
  __device__ __forceinline__ void NAME(unsigned (&d)[1], unsigned address) {                 \
    asm volatile("ldmatrix.sync.aligned.m8n8.x1" TRANS ".shared.b16 {%0}, [%1];"             \
                 : "=r"(d[0])                                                                \
                 : "r"(address)                                                              \
                 : "memory");                                                                \
  }                                                                                          \
  __device__ __forceinline__ void NAME(unsigned (&d)[2], unsigned address) {                 \
    asm volatile("ldmatrix.sync.aligned.m8n8.x2" TRANS ".shared.b16 {%0, %1}, [%2];"         \
                 : "=r"(d[0]), "=r"(d[1])                                                    \
                 : "r"(address)                                                              \
                 : "memory");                                                                \
  }                                                                                          \
  __device__ __forceinline__ void NAME(unsigned (&d)[4], unsigned address) {                 \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4" TRANS ".shared.b16 {%0, %1, %2, %3}, [%4];" \
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])                            \
                 : "r"(address)                                                              \
                 : "memory");                                                                \
  }

PTX_LDMATRIX(ldmatrix, "")
PTX_LDMATRIX(ldmatrix_trans, ".trans")
#undef PTX_LDMATRIX

#define PTX_STMATRIX(NAME, TRANS)                                                                               \
  __device__ __forceinline__ void NAME(unsigned address, const unsigned (&d)[1]) {                              \
    asm volatile("stmatrix.sync.aligned.m8n8.x1" TRANS ".shared.b16 [%0], {%1};" ::"r"(address), "r"(d[0])      \
                 : "memory");                                                                                   \
  }                                                                                                             \
  __device__ __forceinline__ void NAME(unsigned address, const unsigned (&d)[2]) {                              \
    asm volatile("stmatrix.sync.aligned.m8n8.x2" TRANS ".shared.b16 [%0], {%1, %2};" ::"r"(address), "r"(d[0]), \
                 "r"(d[1])                                                                                      \
                 : "memory");                                                                                   \
  }                                                                                                             \
  __device__ __forceinline__ void NAME(unsigned address, const unsigned (&d)[4]) {                              \
    asm volatile("stmatrix.sync.aligned.m8n8.x4" TRANS ".shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),    \
                 "r"(d[0]), "r"(d[1]), "r"(d[2]), "r"(d[3])                                                     \
                 : "memory");                                                                                   \
  }

PTX_STMATRIX(stmatrix, "")
PTX_STMATRIX(stmatrix_trans, ".trans")
#undef PTX_STMATRIX

}  // namespace ptx

#endif
