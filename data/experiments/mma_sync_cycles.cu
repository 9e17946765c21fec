// mma.sync of several types and depths: how long does one product hold its tensor core?
#include "clocks.cuh"

#define A4 "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3])
#define B2 "r"(b[0]), "r"(b[1])
#define D4 "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
#define DEEP(types) "mma.sync.aligned." types " {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"

template <int Kind>
__device__ __forceinline__ void product(u32 (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  if constexpr (Kind == 0) asm volatile(DEEP("m16n8k16.row.col.f32.bf16.bf16.f32") : D4 : A4, B2);
  if constexpr (Kind == 1) asm volatile(DEEP("m16n8k16.row.col.f32.f16.f16.f32") : D4 : A4, B2);
  if constexpr (Kind == 2)  // accumulators of half as many registers
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1},{%2,%3,%4,%5},{%6,%7},{%0,%1};"
                 : "+r"(d[0]), "+r"(d[1])
                 : A4, B2);
  if constexpr (Kind == 3)  // B in two registers of A
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%4,%5},{%0,%1,%2,%3};"
        : D4
        : A4);
  if constexpr (Kind == 4)  // half as deep
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
                 : D4
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));
  if constexpr (Kind == 5)
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1},{%2,%3},{%4},{%0,%1};"
                 : "+r"(d[0]), "+r"(d[1])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));
  if constexpr (Kind == 6) asm volatile(DEEP("m16n8k32.row.col.s32.s8.s8.s32") : D4 : A4, B2);
  if constexpr (Kind == 7) asm volatile(DEEP("m16n8k8.row.col.f32.tf32.tf32.f32") : D4 : A4, B2);
}

template <int Kind, int Chains>
__device__ __forceinline__ void chains(const u32* in, int trips, u32* out, long long* clocks) {
  u32 a[4], b[Chains][2], d[Chains][4];
#pragma unroll
  for (int i = 0; i < 4; ++i) a[i] = in[threadIdx.x + 32 * i];
#pragma unroll
  for (int i = 0; i < Chains; ++i) {
    b[i][0] = in[threadIdx.x + 64 * i + 128], b[i][1] = in[threadIdx.x + 64 * i + 160];
    for (int j = 0; j < 4; ++j) d[i][j] = 0;
  }
  __syncthreads();
  long long start = now();
#pragma unroll 1
  for (int t = 0; t < trips; ++t)
#pragma unroll
    for (int i = 0; i < 32; ++i) product<Kind>(d[i % Chains], a, b[i % Chains]);
  leave(clocks, start);
  u32 sum = 0;
#pragma unroll
  for (int i = 0; i < Chains; ++i)
    for (int j = 0; j < 4; ++j) sum ^= d[i][j];
  out[threadIdx.x] = sum;
}

#define KERNEL(kind, chains_)                                                                                \
  extern "C" __global__ void mma_##kind##_##chains_(const u32* in, int trips, u32* out, long long* clocks) { \
    chains<kind, chains_>(in, trips, out, clocks);                                                           \
  }
#define KIND(kind) KERNEL(kind, 1) KERNEL(kind, 2) KERNEL(kind, 4) KERNEL(kind, 8)
KIND(0) KIND(1) KIND(2) KIND(3) KIND(4) KIND(5) KIND(6) KIND(7)
