// wgmma m64nNk16, f32 accumulators (sm_90a): four warps multiply A (64 x 16) by B (16 x N) and need no result until
// they wait for it. B comes from shared memory, A from shared memory (ss) or registers (rs). A matrix in shared memory
// is K-major (k contiguous) or MN-major (its other index contiguous), said by the template: wgmma_bf16_ss<Major::K,
// Major::MN>(...); K-major unless said.
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

namespace ptx {

enum class Major { K, MN };

// Where byte `offset` of a tile of 128-byte rows lies under the 128-byte swizzle: the 16-byte chunk's number is xored
// with the row's number modulo 8. The tile starts at a multiple of 1024 bytes.
__device__ __forceinline__ unsigned swizzle128(unsigned offset) { return offset ^ ((offset >> 3) & 0x70); }

// Descriptor of a K-major tile of 128-byte rows (64 elements of 16 bits) under that swizzle, at a multiple of 1024
// bytes. Bits 0-13 address / 16; 16-29 leading offset (unused by this layout); 32-45 offset of the next eight rows /
// 16; 62-63 swizzle, 1 = 128 bytes. Slice k of 16 elements starts 32 bytes further on: add wgmma_slice(k).
__device__ __forceinline__ unsigned long long wgmma_descriptor(unsigned address) {
  return 1ull << 62 | (1024ull >> 4) << 32 | 1ull << 16 | (address & 0x3FFFF) >> 4;
}

__device__ __forceinline__ unsigned long long wgmma_slice(int k) { return k * (32 >> 4); }

// Any descriptor. `swizzle` is the span in bytes: 0, 32, 64 or 128. With S = swizzle / 2 elements, 16-bit element
// (i, k), where i is the row of A or the column of B, lies before the swizzle at byte
//   K-major, swizzled      i % 8 * swizzle + i / 8 * stride + 2k                     leading unused
//   K-major, none          i % 8 * 16 + i / 8 * stride + k % 8 * 2 + k / 8 * leading
//   MN-major, swizzled     i % S * 2 + i / S * leading + k % 8 * swizzle + k / 8 * stride
//   MN-major, none         i % 8 * 2 + i / 8 * stride + k % 8 * 16 + k / 8 * leading
// (PTX ISA, 'Strides' and 'Canonical layouts'); then address bits 4 to 6 are xored with bits 7 to 9, one bit for a span
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

namespace ptx {

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Wait until at most Pending of this warp's groups are unfinished.
template <int Pending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

// Inline PTX takes neither loops nor named operands, so the accumulators are written out once: as text (PTX_D, each
// list the one before and its own) and as operands (PTX_R). Another N is its list and one line of PTX_WGMMA_SHAPES.
#define PTX_D4 "%0, %1, %2, %3"
#define PTX_D8 PTX_D4 ", %4, %5, %6, %7"
#define PTX_D16 PTX_D8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define PTX_D32 PTX_D16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define PTX_D40 PTX_D32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define PTX_D48 PTX_D32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define PTX_D56 PTX_D48 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define PTX_D64 PTX_D48 ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define PTX_D72 PTX_D64 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define PTX_D80 PTX_D64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define PTX_D88 PTX_D80 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define PTX_D96 PTX_D80 ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define PTX_D112 PTX_D96 ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define PTX_D128 \
  PTX_D112 ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

#define PTX_R(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define PTX_R16_AT(i) PTX_R(i), PTX_R(i + 4), PTX_R(i + 8), PTX_R(i + 12)
#define PTX_R4 PTX_R(0)
#define PTX_R8 PTX_R4, PTX_R(4)
#define PTX_R16 PTX_R16_AT(0)
#define PTX_R32 PTX_R16, PTX_R16_AT(16)
#define PTX_R40 PTX_R32, PTX_R(32), PTX_R(36)
#define PTX_R48 PTX_R32, PTX_R16_AT(32)
#define PTX_R56 PTX_R48, PTX_R(48), PTX_R(52)
#define PTX_R64 PTX_R48, PTX_R16_AT(48)
#define PTX_R72 PTX_R64, PTX_R(64), PTX_R(68)
#define PTX_R80 PTX_R64, PTX_R16_AT(64)
#define PTX_R88 PTX_R80, PTX_R(80), PTX_R(84)
#define PTX_R96 PTX_R80, PTX_R16_AT(80)
#define PTX_R128 PTX_R96, PTX_R16_AT(96), PTX_R16_AT(112)

#define PTX_WGMMA_TEXT(TYPE, N, D, A, B, P)                                                                    \
  "{ .reg .pred p; setp.ne.b32 p, %" #P ", 0; wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." #TYPE "." #TYPE \
  " {" PTX_D##D "}, " A ", %" #B ", p, 1, 1, "

// d = a * b, plus d where `accumulate` is not 0. N follows from the length of d. I0 to I6 number the operands after d.
#define PTX_WGMMA(TYPE, N, I0, I1, I2, I3, I4, I5, I6)                                                               \
  template <Major A = Major::K, Major B = Major::K>                                                                  \
  __device__ __forceinline__ void wgmma_##TYPE##_ss(float (&d)[N / 2], unsigned long long a, unsigned long long b,   \
                                                    int accumulate) {                                                \
    asm volatile(PTX_WGMMA_TEXT(TYPE, N, I0, "%" #I0, I1, I2) "%" #I3 ", %" #I4 "; }"                                \
                 : PTX_R##I0                                                                                         \
                 : "l"(a), "l"(b), "r"(accumulate), "n"(A == Major::MN), "n"(B == Major::MN)                         \
                 : "memory");                                                                                        \
  }                                                                                                                  \
  template <Major B = Major::K>                                                                                      \
  __device__ __forceinline__ void wgmma_##TYPE##_rs(float (&d)[N / 2], const unsigned (&a)[4], unsigned long long b, \
                                                    int accumulate) {                                                \
    asm volatile(PTX_WGMMA_TEXT(TYPE, N, I0, "{%" #I0 ", %" #I1 ", %" #I2 ", %" #I3 "}", I4, I5) "%" #I6 "; }"       \
                 : PTX_R##I0                                                                                         \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(B == Major::MN)          \
                 : "memory");                                                                                        \
  }

#define PTX_WGMMA_SHAPES(TYPE)                        \
  PTX_WGMMA(TYPE, 8, 4, 5, 6, 7, 8, 9, 10)            \
  PTX_WGMMA(TYPE, 16, 8, 9, 10, 11, 12, 13, 14)       \
  PTX_WGMMA(TYPE, 32, 16, 17, 18, 19, 20, 21, 22)     \
  PTX_WGMMA(TYPE, 64, 32, 33, 34, 35, 36, 37, 38)     \
  PTX_WGMMA(TYPE, 80, 40, 41, 42, 43, 44, 45, 46)     \
  PTX_WGMMA(TYPE, 96, 48, 49, 50, 51, 52, 53, 54)     \
  PTX_WGMMA(TYPE, 112, 56, 57, 58, 59, 60, 61, 62)    \
  PTX_WGMMA(TYPE, 128, 64, 65, 66, 67, 68, 69, 70)    \
  PTX_WGMMA(TYPE, 144, 72, 73, 74, 75, 76, 77, 78)    \
  PTX_WGMMA(TYPE, 160, 80, 81, 82, 83, 84, 85, 86)    \
  PTX_WGMMA(TYPE, 176, 88, 89, 90, 91, 92, 93, 94)    \
  PTX_WGMMA(TYPE, 192, 96, 97, 98, 99, 100, 101, 102) \
  PTX_WGMMA(TYPE, 256, 128, 129, 130, 131, 132, 133, 134)

PTX_WGMMA_SHAPES(bf16)
PTX_WGMMA_SHAPES(f16)

}  // namespace ptx

#endif
