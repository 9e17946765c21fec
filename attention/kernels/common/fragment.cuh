// How scores and outputs lie in a thread's registers: what masks, scores, softmax and store know of an architecture.
//
// A fragment has kCount elements, s[i], of kRows rows: line(i) is which of these, row(i) and column(i) how many rows and
// columns element i lies behind s[0]. kStep is from one row to the next.
#pragma once

// The accumulator that mma.sync m16n8 and wgmma share: rows g and g + 8, and of each two neighbouring columns in every
// eight.
//
//   s[4j + 2h + e]   row g + 8h, column 8j + 2t + e       g = lane / 4, t = lane % 4
template <int Count>
struct RowPair {
  static constexpr int kCount = Count, kRows = 2, kStep = 8;
  float at[Count];

  __device__ __forceinline__ float& operator[](int i) { return at[i]; }
  __device__ __forceinline__ const float& operator[](int i) const { return at[i]; }
  __device__ __forceinline__ static constexpr int line(int i) { return i / 2 % 2; }
  __device__ __forceinline__ static constexpr int row(int i) { return i / 2 % 2 * 8; }
  __device__ __forceinline__ static constexpr int column(int i) { return i / 4 * 8 + i % 2; }

  // Of this thread's elements of a line; as integers, three in one VIMNMX3, in the order of floats above 0.
  __device__ __forceinline__ float largest(int line) const {
    float most = fmaxf(at[2 * line], at[2 * line + 1]);
#pragma unroll
    for (int j = 1; j < Count / 4; ++j) most = fmaxf(most, fmaxf(at[4 * j + 2 * line], at[4 * j + 2 * line + 1]));
    return most;
  }

  __device__ __forceinline__ int largest_bits(int line) const {
    int most = max(__float_as_int(at[2 * line]), __float_as_int(at[2 * line + 1]));
#pragma unroll
    for (int j = 1; j < Count / 4; ++j)
      most = max(max(__float_as_int(at[4 * j + 2 * line]), __float_as_int(at[4 * j + 2 * line + 1])), most);
    return most;
  }

  // Over the threads that hold a row.
  __device__ __forceinline__ static float most(float x) {
    x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
    return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
  }

  __device__ __forceinline__ static float sum(float x) {
    x += __shfl_xor_sync(~0u, x, 1);
    return x + __shfl_xor_sync(~0u, x, 2);
  }
};
