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
#include "ptx/registers.cuh"

namespace ptx {

#define PTX_MATRICES(N, NAME, TRANS)                                                                 \
  __device__ __forceinline__ void ld##NAME(unsigned (&d)[N], unsigned address) {                     \
    asm volatile("ldmatrix.sync.aligned.m8n8.x" #N TRANS ".shared.b16 {" PTX_TEXT(N) "}, [%" #N "];" \
                 : PTX_OPERANDS(N, "=r")                                                             \
                 : "r"(address)                                                                      \
                 : "memory");                                                                        \
  }                                                                                                  \
  __device__ __forceinline__ void st##NAME(unsigned address, const unsigned (&d)[N]) {               \
    asm volatile("stmatrix.sync.aligned.m8n8.x" #N TRANS ".shared.b16 [%" #N                         \
                 "], {" PTX_TEXT(N) "};" ::PTX_OPERANDS(N, "r"),                                     \
                 "r"(address)                                                                        \
                 : "memory");                                                                        \
  }

PTX_MATRICES(1, matrix, "")
PTX_MATRICES(2, matrix, "")
PTX_MATRICES(4, matrix, "")
PTX_MATRICES(1, matrix_trans, ".trans")
PTX_MATRICES(2, matrix_trans, ".trans")
PTX_MATRICES(4, matrix_trans, ".trans")
#undef PTX_MATRICES

}  // namespace ptx

#endif
