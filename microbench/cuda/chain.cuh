// The two kernels behind every arithmetic probe. A probe names its operation as a functor over (x, a, b) and gets:
//   chain_latency     one warp, Length dependent operations in a straight line
//   chain_throughput  a full SM, Chains independent chains a warp, PerTrip operations a trip
// Operands come from memory and the last value lives out, so nothing can be folded or dropped.
#pragma once
#include "timing.cuh"

// in: 96 values of T (three rows of a warp). clocks: see report().
template <class Op, class T, int Length>
__device__ __forceinline__ void chain_latency(const T* in, T* out, long long* clocks) {
  T x = in[threadIdx.x], a = in[32 + threadIdx.x], b = in[64 + threadIdx.x];
  ptx::settle(x), ptx::settle(a), ptx::settle(b);
  long long start = ptx::clock64();
#pragma unroll
  for (int i = 0; i < Length; ++i) x = Op()(x, a, b);
  ptx::settle(x);
  long long end = ptx::clock64();
  out[blockIdx.x * 32 + threadIdx.x] = x;
  report(clocks, start, end);
}

template <class Op, class T, int Chains, int PerTrip>
__device__ __forceinline__ void chain_throughput(const T* in, int trips, T* out, long long* clocks) {
  int lane = threadIdx.x % 32;
  T x[Chains], a = in[32 + lane], b = in[64 + lane];
#pragma unroll
  for (int i = 0; i < Chains; ++i) ptx::settle(x[i] = in[lane] + a * (T)i);
  ptx::settle(a), ptx::settle(b);
  long long start = ptx::clock64();
#pragma unroll 1
  for (int t = 0; t < trips; ++t) {
#pragma unroll
    for (int i = 0; i < PerTrip; ++i) x[i % Chains] = Op()(x[i % Chains], a, b);
  }
#pragma unroll
  for (int i = 0; i < Chains; ++i) ptx::settle(x[i]);
  long long end = ptx::clock64();
#pragma unroll
  for (int i = 1; i < Chains; ++i) x[0] += x[i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = x[0];
  report(clocks, start, end);
}
