// wgmma m64nNk16 on 16-bit floats, f32 accumulators (sm_90a): four warps multiply A (64 x 16) by B (16 x N) and need no
// result until they wait for it. N is every multiple of 8 from 8 to 256; other types have headers of their own,
// wgmma_tf32.cuh, wgmma_fp8.cuh and wgmma_int8.cuh. B comes from shared memory, A from shared memory (ss) or registers
// (rs). A matrix in shared memory is K-major (k contiguous) or MN-major (its other index contiguous), said by the
// template: wgmma_bf16_ss<Major::K, Major::MN>(...); K-major unless said.
//
// Fragments, with w = warp of the warpgroup, g = lane / 4, t = lane % 4 (PTX ISA, 'Register fragments for wgmma'):
//   d[4j], d[4j+1]    row 16w + g,      columns 8j + 2t, 8j + 2t + 1
//   d[4j+2], d[4j+3]  row 16w + g + 8,  the same columns
//   a[0..3]           the a of mma_sync.cuh, rows 16w to 16w + 15
//
// Rules of the instruction: fence before the first wgmma and after any other write of its registers; commit closes a
// group; until a wait has covered that group, neither d nor a may be touched, nor the shared memory be overwritten.
#pragma once
#include "ptx/barrier.cuh"
#include "ptx/matrix.cuh"

namespace ptx {

// Descriptor of a K-major tile of 128-byte rows (64 elements of 16 bits) under that swizzle, at a multiple of 1024
// bytes. Bits 0-13 address / 16; 16-29 leading offset (unused by this layout); 32-45 offset of the next eight rows /
// 16; 62-63 swizzle, 1 = 128 bytes. Slice k of 16 elements starts 32k bytes further on: add wgmma_slice(k).
__device__ __forceinline__ unsigned long long wgmma_descriptor(unsigned address) {
  return 1ull << 62 | (1024ull >> 4) << 32 | 1ull << 16 | (address & 0x3FFFF) >> 4;
}

__device__ __forceinline__ unsigned long long wgmma_slice(int k) { return k * (32 >> 4); }

// Any descriptor. `swizzle` is the span in bytes: 0, 32, 64 or 128. With S = swizzle / 2 elements, 16-bit element
// (i, k), where i is the row of A or the column of B, lies before the swizzle at byte
//   K-major, swizzled      i % 8 * swizzle + i / 8 * stride + 2k                     leading unused
//   K-major, none          i % 8 * 16 + i / 8 * stride + 2k % 16 + 2k / 16 * leading
//   MN-major, swizzled     i % S * 2 + i / S * leading + k % 8 * swizzle + k / 8 * stride
//   MN-major, none         i % 8 * 2 + i / 8 * stride + k % 8 * 16 + k / 8 * leading
// (PTX ISA, 'Strides' and 'Canonical layouts'); other types are K-major only, and their size stands for the 2 before k.
// Then address bits 4 to 6 are xored with bits 7 to 9, one bit for a span
// of 32 bytes, two for 64, three for 128. A tile starts at a multiple of eight spans.
__device__ __forceinline__ unsigned long long matrix_descriptor(unsigned address, unsigned leading, unsigned stride,
                                                                unsigned swizzle) {
  unsigned long long mode = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
  return mode << 62 | static_cast<unsigned long long>(stride >> 4 & 0x3FFF) << 32 |
         static_cast<unsigned long long>(leading >> 4 & 0x3FFF) << 16 | (address & 0x3FFFF) >> 4;
}

}  // namespace ptx

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/wgmma.hpp"
#else
#include "ptx/wgmma_operands.cuh"

namespace ptx {

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Wait until at most Pending of this warp's groups are unfinished.
template <int Pending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

// d = a * b, plus d where `accumulate` is not 0. N follows from the length of d. I0 to I6 number the operands after d.
#define PTX_WGMMA(TYPE, N, I0, I1, I2, I3, I4, I5, I6)                                                                 \
  template <Major A = Major::K, Major B = Major::K>                                                                    \
  __device__ __forceinline__ void wgmma_##TYPE##_ss(float (&d)[N / 2], unsigned long long a, unsigned long long b,     \
                                                    int accumulate) {                                                  \
    asm volatile(PTX_WGMMA_TEXT("k16.f32." #TYPE "." #TYPE, N, I0, "%" #I0, I1, I2, ", 1, 1, %" #I3 ", %" #I4)         \
                 : PTX_OPERANDS(I0, "+f")                                                                              \
                 : "l"(a), "l"(b), "r"(accumulate), "n"(A == Major::MN), "n"(B == Major::MN)                           \
                 : "memory");                                                                                          \
  }                                                                                                                    \
  template <Major B = Major::K>                                                                                        \
  __device__ __forceinline__ void wgmma_##TYPE##_rs(float (&d)[N / 2], const unsigned (&a)[4], unsigned long long b,   \
                                                    int accumulate) {                                                  \
    asm volatile(PTX_WGMMA_TEXT("k16.f32." #TYPE "." #TYPE, N, I0, "{%" #I0 ", %" #I1 ", %" #I2 ", %" #I3 "}", I4, I5, \
                                ", 1, 1, %" #I6)                                                                       \
                 : PTX_OPERANDS(I0, "+f")                                                                              \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(B == Major::MN)            \
                 : "memory");                                                                                          \
  }

PTX_WGMMA_FLOAT_N(PTX_WGMMA, bf16)
PTX_WGMMA_FLOAT_N(PTX_WGMMA, f16)
#undef PTX_WGMMA

}  // namespace ptx

#endif
