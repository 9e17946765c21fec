// The operands of wgmma, written out. Inline PTX takes neither loops nor named operands: for every count of accumulator
// registers this file has their text (PTX_D, each list the one before and its own) and their constraints (PTX_R, with
// "+f" or "+r" for C), and for every N of wgmma one line with the numbers of the operands that follow them.
#pragma once

#define PTX_D4 "%0, %1, %2, %3"
#define PTX_D8 PTX_D4 ", %4, %5, %6, %7"
#define PTX_D12 PTX_D8 ", %8, %9, %10, %11"
#define PTX_D16 PTX_D12 ", %12, %13, %14, %15"
#define PTX_D20 PTX_D16 ", %16, %17, %18, %19"
#define PTX_D24 PTX_D20 ", %20, %21, %22, %23"
#define PTX_D28 PTX_D24 ", %24, %25, %26, %27"
#define PTX_D32 PTX_D28 ", %28, %29, %30, %31"
#define PTX_D36 PTX_D32 ", %32, %33, %34, %35"
#define PTX_D40 PTX_D36 ", %36, %37, %38, %39"
#define PTX_D44 PTX_D40 ", %40, %41, %42, %43"
#define PTX_D48 PTX_D44 ", %44, %45, %46, %47"
#define PTX_D52 PTX_D48 ", %48, %49, %50, %51"
#define PTX_D56 PTX_D52 ", %52, %53, %54, %55"
#define PTX_D60 PTX_D56 ", %56, %57, %58, %59"
#define PTX_D64 PTX_D60 ", %60, %61, %62, %63"
#define PTX_D68 PTX_D64 ", %64, %65, %66, %67"
#define PTX_D72 PTX_D68 ", %68, %69, %70, %71"
#define PTX_D76 PTX_D72 ", %72, %73, %74, %75"
#define PTX_D80 PTX_D76 ", %76, %77, %78, %79"
#define PTX_D84 PTX_D80 ", %80, %81, %82, %83"
#define PTX_D88 PTX_D84 ", %84, %85, %86, %87"
#define PTX_D92 PTX_D88 ", %88, %89, %90, %91"
#define PTX_D96 PTX_D92 ", %92, %93, %94, %95"
#define PTX_D100 PTX_D96 ", %96, %97, %98, %99"
#define PTX_D104 PTX_D100 ", %100, %101, %102, %103"
#define PTX_D108 PTX_D104 ", %104, %105, %106, %107"
#define PTX_D112 PTX_D108 ", %108, %109, %110, %111"
#define PTX_D116 PTX_D112 ", %112, %113, %114, %115"
#define PTX_D120 PTX_D116 ", %116, %117, %118, %119"
#define PTX_D124 PTX_D120 ", %120, %121, %122, %123"
#define PTX_D128 PTX_D124 ", %124, %125, %126, %127"

#define PTX_R_AT(C, i) C(d[i]), C(d[i + 1]), C(d[i + 2]), C(d[i + 3])
#define PTX_R4(C) PTX_R_AT(C, 0)
#define PTX_R8(C) PTX_R4(C), PTX_R_AT(C, 4)
#define PTX_R12(C) PTX_R8(C), PTX_R_AT(C, 8)
#define PTX_R16(C) PTX_R12(C), PTX_R_AT(C, 12)
#define PTX_R20(C) PTX_R16(C), PTX_R_AT(C, 16)
#define PTX_R24(C) PTX_R20(C), PTX_R_AT(C, 20)
#define PTX_R28(C) PTX_R24(C), PTX_R_AT(C, 24)
#define PTX_R32(C) PTX_R28(C), PTX_R_AT(C, 28)
#define PTX_R36(C) PTX_R32(C), PTX_R_AT(C, 32)
#define PTX_R40(C) PTX_R36(C), PTX_R_AT(C, 36)
#define PTX_R44(C) PTX_R40(C), PTX_R_AT(C, 40)
#define PTX_R48(C) PTX_R44(C), PTX_R_AT(C, 44)
#define PTX_R52(C) PTX_R48(C), PTX_R_AT(C, 48)
#define PTX_R56(C) PTX_R52(C), PTX_R_AT(C, 52)
#define PTX_R60(C) PTX_R56(C), PTX_R_AT(C, 56)
#define PTX_R64(C) PTX_R60(C), PTX_R_AT(C, 60)
#define PTX_R68(C) PTX_R64(C), PTX_R_AT(C, 64)
#define PTX_R72(C) PTX_R68(C), PTX_R_AT(C, 68)
#define PTX_R76(C) PTX_R72(C), PTX_R_AT(C, 72)
#define PTX_R80(C) PTX_R76(C), PTX_R_AT(C, 76)
#define PTX_R84(C) PTX_R80(C), PTX_R_AT(C, 80)
#define PTX_R88(C) PTX_R84(C), PTX_R_AT(C, 84)
#define PTX_R92(C) PTX_R88(C), PTX_R_AT(C, 88)
#define PTX_R96(C) PTX_R92(C), PTX_R_AT(C, 92)
#define PTX_R100(C) PTX_R96(C), PTX_R_AT(C, 96)
#define PTX_R104(C) PTX_R100(C), PTX_R_AT(C, 100)
#define PTX_R108(C) PTX_R104(C), PTX_R_AT(C, 104)
#define PTX_R112(C) PTX_R108(C), PTX_R_AT(C, 108)
#define PTX_R116(C) PTX_R112(C), PTX_R_AT(C, 112)
#define PTX_R120(C) PTX_R116(C), PTX_R_AT(C, 116)
#define PTX_R124(C) PTX_R120(C), PTX_R_AT(C, 120)
#define PTX_R128(C) PTX_R124(C), PTX_R_AT(C, 124)

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
#define PTX_WGMMA_K_MAJOR_TEXT(TEXT, N, D, A, B, P, TAIL)                                              \
  "{ .reg .pred p; setp.ne.b32 p, %" #P ", 0; wgmma.mma_async.sync.aligned.m64n" #N TEXT " {" PTX_D##D \
      "}, " A ", %" #B ", p" TAIL "; }"

#define PTX_WGMMA_K_MAJOR(NAME, TEXT, D_TYPE, C, TAIL, N, I0, I1, I2, I3, I4, I5, I6)                                \
  __device__ __forceinline__ void wgmma_##NAME##_ss(D_TYPE(&d)[N / 2], unsigned long long a, unsigned long long b,   \
                                                    int accumulate) {                                                \
    asm volatile(PTX_WGMMA_K_MAJOR_TEXT(TEXT, N, I0, "%" #I0, I1, I2, TAIL)                                          \
                 : PTX_R##I0(C)                                                                                      \
                 : "l"(a), "l"(b), "r"(accumulate)                                                                   \
                 : "memory");                                                                                        \
  }                                                                                                                  \
  __device__ __forceinline__ void wgmma_##NAME##_rs(D_TYPE(&d)[N / 2], const unsigned (&a)[4], unsigned long long b, \
                                                    int accumulate) {                                                \
    asm volatile(PTX_WGMMA_K_MAJOR_TEXT(TEXT, N, I0, "{%" #I0 ", %" #I1 ", %" #I2 ", %" #I3 "}", I4, I5, TAIL)       \
                 : PTX_R##I0(C)                                                                                      \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate)                               \
                 : "memory");                                                                                        \
  }
