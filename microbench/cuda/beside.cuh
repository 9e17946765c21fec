// Work beside tensor-core products: independent chains of one operation, as in chain.cuh, whose thread may have products
// in flight meanwhile. A probe names its operation as a functor over (x, a, b).
#pragma once
#include "timing.cuh"

// Where the work stands: behind the products of a trip, among them as ptxas mixes it in, or in other warps.
enum class Where { after, among, other };

template <class Op, int Chains>
struct Work {
  float x[Chains], a, b;

  // in: 96 floats (three rows of a warp).
  __device__ __forceinline__ explicit Work(const float* in) {
    const int lane = threadIdx.x % 32;
    a = in[32 + lane], b = in[64 + lane];
#pragma unroll
    for (int i = 0; i < Chains; ++i) x[i] = in[lane] + a * (float)i;
    settle();
    ptx::settle(a), ptx::settle(b);
  }

  template <int Count>
  __device__ __forceinline__ void compute() {
#pragma unroll
    for (int i = 0; i < Count; ++i) x[i % Chains] = Op()(x[i % Chains], a, b);
  }

  __device__ __forceinline__ void settle() const {
#pragma unroll
    for (int i = 0; i < Chains; ++i) ptx::settle(x[i]);
  }

  __device__ __forceinline__ float sum() const {
    float total = x[0];
#pragma unroll
    for (int i = 1; i < Chains; ++i) total += x[i];
    return total;
  }
};

// One loop of both, in the same warps: the products of a trip are issued, then waited for behind what stands beside them.
// Either may be none. ptxas moves work in among the products by its own count of cycles, unless pins keep it behind them.
template <Where Placed, int Results, class Products, class Others>
__device__ __forceinline__ void in_one_loop(Products& products, Others& others, int trips) {
  constexpr bool kPinned = Placed == Where::after && Products::kMultiplies && Results > 0;
#pragma unroll 1
  for (int t = 0; t < trips; ++t) {
    products.issue();
    if (kPinned) products.pin(t);
    others.template compute<Results>();
    if (kPinned) products.pin(t);
    products.wait();
  }
}

// A loop of either kind in warps of its own; one that has no trips does not run.
template <int Results, class Products, class Others>
__device__ __forceinline__ void in_two_loops(bool multiplies, Products& products, Others& others, int product_trips,
                                             int other_trips) {
  if (multiplies) {
#pragma unroll 1
    for (int t = 0; t < product_trips; ++t) {
      products.issue();
      products.wait();
    }
  } else {
#pragma unroll 1
    for (int t = 0; t < other_trips; ++t) others.template compute<Results>();
    others.settle();
  }
}

// From a shuffle ptxas knows that a warp agrees: no branch of a warpgroup diverges.
__device__ __forceinline__ bool in_first_warpgroup() { return __shfl_sync(~0u, threadIdx.x / 128, 0) == 0; }

// By the whole block; where work has a loop of its own, those that multiply have the other one. sums, ends: one a
// thread, of products and of the work beside them.
template <Where Placed, int Results, class Products, class Others, class End>
__device__ __forceinline__ void time_beside(bool multiplies, Products& products, Others& others, int product_trips,
                                            int other_trips, float* sums, End* ends, long long* clocks) {
  __syncthreads();

  const long long start = ptx::clock64();
  if constexpr (Placed == Where::other) {
    in_two_loops<Results>(multiplies, products, others, product_trips, other_trips);
  } else {
    in_one_loop<Placed, Results>(products, others, product_trips);
    others.settle();
  }
  const long long end = ptx::clock64();

  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  sums[thread] = products.sum();
  ends[thread] = others.sum();
  report(clocks, start, end);
}
