// FFMA with other operands: how many different registers does one instruction read, and which of them again?
#include "clocks.cuh"

template <int Form, int Chains>
__device__ __forceinline__ void chains(const float* in, int trips, float* out, long long* clocks) {
  float x[Chains], a = in[threadIdx.x], b = in[threadIdx.x + 32];
#pragma unroll
  for (int i = 0; i < Chains; ++i) x[i] = in[threadIdx.x + i];
  __syncthreads();
  long long start = now();
#pragma unroll 1
  for (int t = 0; t < trips; ++t)
#pragma unroll
    for (int i = 0; i < 512; ++i) {
      float& y = x[i % Chains];
      if (Form == 0) asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(y) : "f"(a), "f"(b));
      if (Form == 1) asm volatile("fma.rn.f32 %0, %0, 0f3F800001, %1;" : "+f"(y) : "f"(b));
      if (Form == 2) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(y));
      if (Form == 3) asm volatile("fma.rn.f32 %0, %0, %1, %0;" : "+f"(y) : "f"(a));
    }
  leave(clocks, start);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < Chains; ++i) sum += x[i];
  out[threadIdx.x] = sum;
}

#define KERNEL(form, chains_)                                                                                     \
  extern "C" __global__ void ffma_##form##_##chains_(const float* in, int trips, float* out, long long* clocks) { \
    chains<form, chains_>(in, trips, out, clocks);                                                                \
  }
#define FORM(form) KERNEL(form, 1) KERNEL(form, 2) KERNEL(form, 3) KERNEL(form, 4) KERNEL(form, 8)
FORM(0) FORM(1) FORM(2) FORM(3)
