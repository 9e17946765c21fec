// The shapes of wgmma: for every N one line with the numbers of the operands that follow its accumulators, since inline
// PTX has no named operands.
#pragma once
#include "ptx/registers.cuh"

// MAKE(..., N, and the numbers of the first seven operands after the accumulators, of which there are N / 2). Floats
// take every multiple of 8; integers 8, 24 and the multiples of 16 (PTX ISA, 'Matrix shape' of wgmma).
#define PTX_WGMMA_INTEGER_N(MAKE, ...)                      \
  MAKE(__VA_ARGS__, 8, 4, 5, 6, 7, 8, 9, 10)                \
  MAKE(__VA_ARGS__, 16, 8, 9, 10, 11, 12, 13, 14)           \
  MAKE(__VA_ARGS__, 24, 12, 13, 14, 15, 16, 17, 18)         \
  MAKE(__VA_ARGS__, 32, 16, 17, 18, 19, 20, 21, 22)         \
  MAKE(__VA_ARGS__, 48, 24, 25, 26, 27, 28, 29, 30)         \
  MAKE(__VA_ARGS__, 64, 32, 33, 34, 35, 36, 37, 38)         \
  MAKE(__VA_ARGS__, 80, 40, 41, 42, 43, 44, 45, 46)         \
  MAKE(__VA_ARGS__, 96, 48, 49, 50, 51, 52, 53, 54)         \
  MAKE(__VA_ARGS__, 112, 56, 57, 58, 59, 60, 61, 62)        \
  MAKE(__VA_ARGS__, 128, 64, 65, 66, 67, 68, 69, 70)        \
  MAKE(__VA_ARGS__, 144, 72, 73, 74, 75, 76, 77, 78)        \
  MAKE(__VA_ARGS__, 160, 80, 81, 82, 83, 84, 85, 86)        \
  MAKE(__VA_ARGS__, 176, 88, 89, 90, 91, 92, 93, 94)        \
  MAKE(__VA_ARGS__, 192, 96, 97, 98, 99, 100, 101, 102)     \
  MAKE(__VA_ARGS__, 208, 104, 105, 106, 107, 108, 109, 110) \
  MAKE(__VA_ARGS__, 224, 112, 113, 114, 115, 116, 117, 118) \
  MAKE(__VA_ARGS__, 240, 120, 121, 122, 123, 124, 125, 126) \
  MAKE(__VA_ARGS__, 256, 128, 129, 130, 131, 132, 133, 134)

#define PTX_WGMMA_OTHER_N(MAKE, ...)                        \
  MAKE(__VA_ARGS__, 40, 20, 21, 22, 23, 24, 25, 26)         \
  MAKE(__VA_ARGS__, 56, 28, 29, 30, 31, 32, 33, 34)         \
  MAKE(__VA_ARGS__, 72, 36, 37, 38, 39, 40, 41, 42)         \
  MAKE(__VA_ARGS__, 88, 44, 45, 46, 47, 48, 49, 50)         \
  MAKE(__VA_ARGS__, 104, 52, 53, 54, 55, 56, 57, 58)        \
  MAKE(__VA_ARGS__, 120, 60, 61, 62, 63, 64, 65, 66)        \
  MAKE(__VA_ARGS__, 136, 68, 69, 70, 71, 72, 73, 74)        \
  MAKE(__VA_ARGS__, 152, 76, 77, 78, 79, 80, 81, 82)        \
  MAKE(__VA_ARGS__, 168, 84, 85, 86, 87, 88, 89, 90)        \
  MAKE(__VA_ARGS__, 184, 92, 93, 94, 95, 96, 97, 98)        \
  MAKE(__VA_ARGS__, 200, 100, 101, 102, 103, 104, 105, 106) \
  MAKE(__VA_ARGS__, 216, 108, 109, 110, 111, 112, 113, 114) \
  MAKE(__VA_ARGS__, 232, 116, 117, 118, 119, 120, 121, 122) \
  MAKE(__VA_ARGS__, 248, 124, 125, 126, 127, 128, 129, 130)

#define PTX_WGMMA_FLOAT_N(MAKE, ...)     \
  PTX_WGMMA_INTEGER_N(MAKE, __VA_ARGS__) \
  PTX_WGMMA_OTHER_N(MAKE, __VA_ARGS__)

// Both forms of a type whose matrices are K-major only. TEXT is what follows m64nN; TAIL holds the signs of A and B,
// which integers lack. d = a * b, plus d where `accumulate` is not 0.
#define PTX_WGMMA_TEXT(TEXT, N, D, A, B, P, TAIL)                                        \
  "{ .reg .pred p; setp.ne.b32 p, %" #P ", 0; wgmma.mma_async.sync.aligned.m64n" #N TEXT \
  " {" PTX_TEXT(D) "}, " A ", %" #B ", p" TAIL "; }"

#define PTX_WGMMA_K_MAJOR(NAME, TEXT, D_TYPE, C, TAIL, N, I0, I1, I2, I3, I4, I5, I6)                                \
  __device__ __forceinline__ void wgmma_##NAME##_ss(D_TYPE(&d)[N / 2], unsigned long long a, unsigned long long b,   \
                                                    int accumulate) {                                                \
    asm volatile(PTX_WGMMA_TEXT(TEXT, N, I0, "%" #I0, I1, I2, TAIL)                                                  \
                 : PTX_OPERANDS(I0, C)                                                                               \
                 : "l"(a), "l"(b), "r"(accumulate)                                                                   \
                 : "memory");                                                                                        \
  }                                                                                                                  \
  __device__ __forceinline__ void wgmma_##NAME##_rs(D_TYPE(&d)[N / 2], const unsigned (&a)[4], unsigned long long b, \
                                                    int accumulate) {                                                \
    asm volatile(PTX_WGMMA_TEXT(TEXT, N, I0, "{%" #I0 ", %" #I1 ", %" #I2 ", %" #I3 "}", I4, I5, TAIL)               \
                 : PTX_OPERANDS(I0, C)                                                                               \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate)                               \
                 : "memory");                                                                                        \
  }
