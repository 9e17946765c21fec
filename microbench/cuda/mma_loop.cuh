// The kernel behind both mma.sync probes: every warp has Chains accumulators and multiplies them in turn, one A against
// Chains different B, as a warp's tile in a matrix product does. Registers only: the tensor cores alone are timed.
//
// Accumulators stay finite and small whatever the trip count: each B meets A and then the negative of A.
#pragma once
#include "ptx/mma_sync.cuh"
#include "timing.cuh"

#define PER_TRIP 8

struct Bf16 {
  static __device__ void mma(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    ptx::mma_m16n8k16_bf16(d, a, b);
  }
};

struct F16 {
  static __device__ void mma(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    ptx::mma_m16n8k16_f16(d, a, b);
  }
};

// operands: 8 + 2 * Chains rows of one word a thread: a, the negative of a, every b. out: one float a thread.
template <class Type, int Chains>
__device__ __forceinline__ void mma_loop(const unsigned* operands, int trips, float* out, long long* clocks) {
  const unsigned* mine = operands + threadIdx.x;
  unsigned a[2][4], b[Chains][2];
  float d[Chains][4];
#pragma unroll
  for (int i = 0; i < 8; ++i) a[i / 4][i % 4] = mine[i * blockDim.x];
#pragma unroll
  for (int i = 0; i < 2 * Chains; ++i) b[i / 2][i % 2] = mine[(8 + i) * blockDim.x];
#pragma unroll
  for (int i = 0; i < 4 * Chains; ++i) d[i / 4][i % 4] = 0.f;
  __syncthreads();

  long long start = ptx::clock64();
#pragma unroll 1
  for (int t = 0; t < trips; ++t) {
#pragma unroll
    for (int i = 0; i < PER_TRIP; ++i) Type::mma(d[i % Chains], a[i / Chains % 2], b[i % Chains]);
  }
  long long end = ptx::clock64();

  float sum = 0.f;
#pragma unroll
  for (int i = 0; i < 4 * Chains; ++i) sum += d[i / 4][i % 4];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
  report(clocks, start, end);
}
