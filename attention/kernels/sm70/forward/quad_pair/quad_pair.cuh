// A product of 16 x 16 x 4 by the four quad pairs of a warp, and where its elements lie.
//
// mma m8n8k4 makes four products of 8 x 8 x 4, one for each quad pair (ptx/mma_sm70.cuh). Two by two they are one of
// 16 x 16: lane bit 3 chooses the pair's rows, bit 2 its columns. Which rows of Q and which keys a pair's eight are is
// free. They are chosen so that an accumulator lies as mma.sync m16n8 and wgmma have it (fragment.cuh), on other lanes,
// and so that keys follow one another in the operand of p V:
//
//   bits of the lane        4: h    3: row pair    2: column pair    1, 0: t
//   operand Q, p            row  (t & 1) + 2h + 4 row pair + 4 (t & 2)
//   operand K               key  t + 4 column pair + 8h
//   accumulator s[4j + 2i + e]   row (t & 1) + 2h + 4 row pair + 8i    key  8j + (t & 2) + 4 column pair + e
#pragma once
#include "fragment.cuh"
#include "ptx/memory.cuh"
#include "ptx/mma_sm70.cuh"

struct Place {
  int lane;

  __device__ __forceinline__ Place() : lane(threadIdx.x % 32) {}
  __device__ __forceinline__ int t() const { return lane % 4; }
  __device__ __forceinline__ int column_pair() const { return lane / 4 % 2; }
  __device__ __forceinline__ int upper() const { return lane / 16; }
  __device__ __forceinline__ bool lower_half() const { return lane & 2; }  // its row as an operand is one of the last 8

  __device__ __forceinline__ int accumulator_row() const { return lane % 2 + upper() * 2 + lane / 8 % 2 * 4; }
  __device__ __forceinline__ int accumulator_key() const { return (lane & 2) + column_pair() * 4; }
  __device__ __forceinline__ int operand_row() const { return accumulator_row() + (lane & 2) * 4; }
  __device__ __forceinline__ int operand_key() const { return t() + column_pair() * 4 + upper() * 8; }
};

template <int Count>
struct QuadPair : RowPair<Count> {
  // Over the threads that hold a row.
  __device__ __forceinline__ static float most(float x) {
    x = fmaxf(x, __shfl_xor_sync(~0u, x, 2));
    return fmaxf(x, __shfl_xor_sync(~0u, x, 4));
  }

  __device__ __forceinline__ static float sum(float x) {
    x += __shfl_xor_sync(~0u, x, 2);
    return x + __shfl_xor_sync(~0u, x, 4);
  }
};

// Words of one row, as an operand has them: four 16-bit numbers side by side.
struct Row4 {
  unsigned word[2];
};

// Of the two rows of an accumulator, each with two 16-bit numbers here and two on the lane that differs in bit 1, the
// one that this lane has as an operand.
__device__ __forceinline__ Row4 row_of(unsigned upper, unsigned lower) {
  const bool mine = Place().lower_half();
  const unsigned kept = mine ? lower : upper, got = __shfl_xor_sync(~0u, mine ? upper : lower, 2);
  return {mine ? got : kept, mine ? kept : got};
}

using ptx::Order;

// d += a b, two steps of K, from 16 bytes of either operand: s = Q K^T.
__device__ __forceinline__ void multiply_both(float* d, const ptx::vec4& a, const ptx::vec4& b) {
  float (&sums)[8] = *reinterpret_cast<float (*)[8]>(d);
  const unsigned a_low[2] = {a.x, a.y}, b_low[2] = {b.x, b.y}, a_high[2] = {a.z, a.w}, b_high[2] = {b.z, b.w};
  ptx::mma_m8n8k4<Order::row, Order::col>(sums, a_low, b_low);
  ptx::mma_m8n8k4<Order::row, Order::col>(sums, a_high, b_high);
}

// o += p V, four keys.
__device__ __forceinline__ void multiply_keys(float* d, const Row4& a, unsigned b0, unsigned b1) {
  float (&sums)[8] = *reinterpret_cast<float (*)[8]>(d);
  const unsigned b[2] = {b0, b1};
  ptx::mma_m8n8k4<Order::row, Order::row>(sums, a.word, b);
}
