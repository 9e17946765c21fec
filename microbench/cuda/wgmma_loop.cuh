// The kernel behind every wgmma probe: each warpgroup of a block multiplies its own 64 rows of A by one B that all
// share, as the warpgroups of an attention block share a tile of keys. No loads in the loop: the tensor cores alone are
// timed.
//
// Accumulators stay finite and as small as in a real product whatever the trip count: columns 32 to 63 of A hold the
// negative of columns 0 to 31, and every slice of B meets both. The eight wgmma of a trip add, up to rounding, nothing.
#pragma once
#include "ptx/memory.cuh"
#include "ptx/wgmma.cuh"
#include "timing.cuh"

#define ROW_BYTES 128  // 64 elements of 16 bits: the width of the 128-byte swizzle, four slices of k16
#define A_ROWS 64
#define PER_TRIP 8

// Copy `rows` rows of 64 elements from global memory to a swizzled tile.
__device__ __forceinline__ void fill_tile(unsigned tile, const unsigned* source, int rows) {
  for (int i = threadIdx.x; i < rows * (ROW_BYTES / 4); i += blockDim.x)
    ptx::store_shared(tile + ptx::swizzle128(4 * i), source[i]);
}

// This thread's part of rows 64 * warpgroup to 64 * warpgroup + 63 of A, columns 16k to 16k + 15.
__device__ __forceinline__ void load_fragment(unsigned (&f)[4], const unsigned* a, int k) {
  int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4, word = 8 * k + lane % 4;
#pragma unroll
  for (int r = 0; r < 4; ++r) f[r] = a[(row + r % 2 * 8) * (ROW_BYTES / 4) + word + r / 2 * 4];
}

// a: 64 rows a warpgroup, b: N rows, both of 64 elements. out: one float a thread. Dynamic shared memory holds both
// tiles and 1024 bytes to align them. WaitEach: every wgmma is a group that is waited for; else
// a trip is a group, and only the end waits.
template <int N, bool FromRegisters, bool WaitEach>
__device__ __forceinline__ void wgmma_loop(const unsigned* a, const unsigned* b, int trips, float* out,
                                           long long* clocks) {
  unsigned b_tile = (ptx::shared_base() + 1023) & ~1023u, a_tile = b_tile + N * ROW_BYTES;
  fill_tile(b_tile, b, N);
  fill_tile(a_tile, a, A_ROWS * (blockDim.x / 128));
  ptx::fence_proxy_async();
  // From a shuffle ptxas knows that a warp agrees, and keeps the descriptors in uniform registers throughout.
  unsigned warpgroup = __shfl_sync(~0u, threadIdx.x / 128, 0);
  ptx::u64 da = ptx::wgmma_descriptor(a_tile + warpgroup * (A_ROWS * ROW_BYTES));
  ptx::u64 db = ptx::wgmma_descriptor(b_tile);
  unsigned plus[4], minus[4];
  float d[N / 2];
  load_fragment(plus, a, 0);
  load_fragment(minus, a, 2);
#pragma unroll
  for (int i = 0; i < N / 2; ++i) d[i] = 0.f;
  __syncthreads();

  long long start = ptx::clock64();
  int t = 0;
#pragma unroll 1
  do {
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < PER_TRIP; ++i) {
      ptx::u64 bk = db + ptx::wgmma_slice(i / 4 * 2 + i % 2);
      if (WaitEach && i) ptx::wgmma_fence();
      if (FromRegisters)
        ptx::wgmma_bf16_rs(d, i % 4 < 2 ? plus : minus, bk, 1);
      else
        ptx::wgmma_bf16_ss(d, da + ptx::wgmma_slice(i % 4), bk, 1);
      if (WaitEach || i == PER_TRIP - 1) ptx::wgmma_commit();
      if (WaitEach) ptx::wgmma_wait<0>();
    }
  } while (++t < trips);
  if (!WaitEach) ptx::wgmma_wait<0>();
  long long end = ptx::clock64();

  float sum = 0.f;
#pragma unroll
  for (int i = 0; i < N / 2; ++i) sum += d[i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
  report(clocks, start, end);
}
