// The kernel behind the probes that ask what hides behind wgmma. A warpgroup issues the eight wgmma of a trip, computes
// on other registers or leaves that to the warpgroup beside it, and waits for the group: the order of an attention
// kernel, whose next step needs the products. The wait is there in every build, so that it cancels.
//
//   PRODUCTS, RESULTS   what a trip holds: eight wgmma or none, and results of the operation a thread
//   WHERE               'after' and 'among' are one loop of one warpgroup, 'other' one loop each of two
#pragma once
#include "beside.cuh"
#include "wgmma_loop.cuh"

// The tiles of wgmma_loop.cuh: eight wgmma add, up to rounding, nothing.
template <int N, bool FromRegisters, bool Multiply>
struct Wgmma {
  static constexpr bool kMultiplies = Multiply;
  ptx::u64 da, db;
  unsigned plus[4], minus[4];
  float d[N / 2];

  __device__ __forceinline__ Wgmma(const unsigned* a, const unsigned* b) {
    const unsigned b_tile = (ptx::shared_base() + 1023) & ~1023u, a_tile = b_tile + N * ROW_BYTES;
    fill_tile(b_tile, b, N);
    fill_tile(a_tile, a, A_ROWS);
    ptx::fence_proxy_async();
    da = ptx::wgmma_descriptor(a_tile), db = ptx::wgmma_descriptor(b_tile);
    load_fragment(plus, a, 0);
    load_fragment(minus, a, 2);
#pragma unroll
    for (int i = 0; i < N / 2; ++i) d[i] = 0.f;
  }

  __device__ __forceinline__ void issue() {
    if (!Multiply) return;
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < PER_TRIP; ++i) {
      const ptx::u64 bk = db + ptx::wgmma_slice(i / 4 * 2 + i % 2);
      if (FromRegisters)
        ptx::wgmma_bf16_rs(d, i % 4 < 2 ? plus : minus, bk, 1);
      else
        ptx::wgmma_bf16_ss(d, da + ptx::wgmma_slice(i % 4), bk, 1);
    }
    ptx::wgmma_commit();
  }

  // A compare and a trigger that never fires. ptxas moves nothing across it, and lets it wait for what is pending: the
  // results beside the products, not the products.
  __device__ __forceinline__ void pin(int trip) const { ptx::settle(trip); }

  __device__ __forceinline__ void wait() const {
    if (Multiply) ptx::wgmma_wait<0>();
  }

  __device__ __forceinline__ float sum() const {
    float total = 0.f;
#pragma unroll
    for (int i = 0; i < N / 2; ++i) total += d[i];
    return total;
  }
};

// a: 64 rows a warpgroup, of which the first 64 are multiplied; b: N rows; both of 64 elements. sums, ends: a float a
// thread, of products and of the work beside them.
template <class Op, Where Placed, int N, bool FromRegisters, bool Multiply, int Results>
__device__ __forceinline__ void wgmma_beside(const unsigned* a, const unsigned* b, const float* in, int product_trips,
                                             int other_trips, float* sums, float* ends, long long* clocks) {
  const bool multiplies = in_first_warpgroup();
  Wgmma<N, FromRegisters, Multiply> products(a, b);
  Work<Op, 8> work(in);
  time_beside<Placed, Results>(multiplies, products, work, product_trips, other_trips, sums, ends, clocks);
}
