// The kernel behind the probes that ask what hides behind mma.sync. A warp waits at an mma.sync only for its operands, so
// that work overlaps in the same warp, as far as ptxas mixes both, and in the warps beside it.
//
//   PRODUCTS, RESULTS   what a trip holds: 32 mma.sync or none, and results of the operation a thread
//   WHERE               'among' is one loop of four warps, 'other' one loop each of four and four
#pragma once
#include "beside.cuh"
#include "mma_loop.cuh"

// Eight accumulators in turn, more than the latency needs of one warp a scheduler. Every B meets A and its negative.
template <bool Multiply>
struct MmaSync {
  static constexpr bool kMultiplies = Multiply;
  static constexpr int kChains = 8, kTrip = 32;
  unsigned a[2][4], b[kChains][2];
  float d[kChains][4];

  // operands: 8 + 2 * kChains rows of one word a thread: a, the negative of a, every b.
  __device__ __forceinline__ explicit MmaSync(const unsigned* operands) {
    const unsigned* mine = operands + threadIdx.x;
#pragma unroll
    for (int i = 0; i < 8; ++i) a[i / 4][i % 4] = mine[i * blockDim.x];
#pragma unroll
    for (int i = 0; i < 2 * kChains; ++i) b[i / 2][i % 2] = mine[(8 + i) * blockDim.x];
#pragma unroll
    for (int i = 0; i < 4 * kChains; ++i) d[i / 4][i % 4] = 0.f;
  }

  __device__ __forceinline__ void issue() {
    if (!Multiply) return;
#pragma unroll
    for (int i = 0; i < kTrip; ++i) Bf16::mma(d[i % kChains], a[i / kChains % 2], b[i % kChains]);
  }

  __device__ __forceinline__ void pin(int) const {}
  __device__ __forceinline__ void wait() const {}

  __device__ __forceinline__ float sum() const {
    float total = 0.f;
#pragma unroll
    for (int i = 0; i < 4 * kChains; ++i) total += d[i / 4][i % 4];
    return total;
  }
};

// sums, ends: a float a thread, of products and of the work beside them.
template <class Op, Where Placed, bool Multiply, int Results>
__device__ __forceinline__ void mma_beside(const unsigned* operands, const float* in, int product_trips,
                                           int other_trips, float* sums, float* ends, long long* clocks) {
  const bool multiplies = in_first_warpgroup();
  MmaSync<Multiply> products(operands);
  Work<Op, 8> work(in);
  time_beside<Placed, Results>(multiplies, products, work, product_trips, other_trips, sums, ends, clocks);
}
