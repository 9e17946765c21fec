// Fragments of Q, K and V from shared memory, and their products.
//
// One ldmatrix.x4 fetches 16 rows by 16 columns as four matrices, in the order in which the product wants its
// registers: of Q a fragment a, of K the fragments b of two times eight keys, of V (transposed) those of two times
// eight columns. The XOR of a column's chunk with the row repeats every kGroup chunks, so that kGroup / 2 addresses and
// immediates reach a whole tile.
#pragma once
#include "config.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/mma_sync.cuh"

// Where a lane reads. Matrices count down the rows first (Q and V), or across the columns first (K).
template <class Row>
struct Address {
  unsigned at;

  __device__ __forceinline__ explicit Address(bool rows_first) {
    const int lane = threadIdx.x % 32;
    const int lower = lane / 8 % 2, upper = lane / 16;
    const int row = lane % 8 + 8 * (rows_first ? lower : upper), chunk = rows_first ? upper : lower;
    at = row * Row::kBytes + ((chunk ^ Row::bits(row)) << 4);
  }

  // Columns 16 * column on of the 16 rows from `base` on.
  __device__ __forceinline__ unsigned of(unsigned base, int column) const {
    constexpr int kAddresses = Row::kGroup / 2;
    return base + (at ^ column % kAddresses * 32) + column / kAddresses * 16 * Row::kGroup;
  }
};

// d += a b for the product's N of eight.
__device__ __forceinline__ void multiply(float* d, const unsigned (&a)[4], unsigned b0, unsigned b1) {
  float (&accumulators)[4] = *reinterpret_cast<float (*)[4]>(d);
  const unsigned b[2] = {b0, b1};
  if constexpr (kBf16)
    ptx::mma_m16n8k16_bf16(accumulators, a, b);
  else
    ptx::mma_m16n8k16_f16(accumulators, a, b);
}
