// The outputs of a warpgroup, from registers to global memory: no shared memory, no barrier, any stride.
//
// Four lanes hold the four pairs of columns in every eight. They trade words so that each has eight neighbouring
// columns of one row: 16 bytes a lane, 64 a quad, whole sectors.
#pragma once
#include "online_softmax.cuh"
#include "ptx/convert.cuh"
#include "ptx/memory.cuh"
#include "schedule.cuh"

// Lane t's words[i] becomes lane i's words[t], t and i below 4.
__device__ __forceinline__ void transpose_quad(unsigned (&words)[4], int t) {
#pragma unroll
  for (int bit = 1; bit <= 2; bit *= 2)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i & bit) continue;
      const bool upper = t & bit;
      const unsigned got = __shfl_xor_sync(~0u, upper ? words[i] : words[i | bit], bit);
      words[i] = upper ? got : words[i];
      words[i | bit] = upper ? words[i | bit] : got;
    }
}

__device__ __forceinline__ unsigned pack_pair(float low, float high) {
  return kBf16 ? ptx::pack_bf16(low, high) : ptx::pack_f16(low, high);
}

__device__ __forceinline__ unsigned long long row_address(const Launch& launch, const Work& work, int row) {
  const long long element = work.batch * launch.out_batch + work.head * launch.out_head + row * launch.out_row;
  return reinterpret_cast<unsigned long long>(launch.out) + 2 * element;
}

__device__ __forceinline__ float* lse_of(const Launch& launch, const Work& work, int row) {
  return launch.lse + (static_cast<long long>(work.batch) * launch.heads + work.head) * launch.queries + row;
}

// `row` is the row of o[0]; a row that saw no key gives 0 and -inf.
__device__ __forceinline__ void store_rows(const Launch& launch, const Work& work, int row, int lane,
                                           const float (&o)[kHeadDim / 2], const Softmax& state) {
  const int t = lane % 4;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float sum = quad_sum(state.sum[h]);
    const bool saw = sum > 0.f || sum != sum;
    const float inverse = saw ? 1.f / sum : 0.f;
    const bool inside = row + 8 * h < launch.queries;
    const unsigned long long out = row_address(launch, work, row + 8 * h);
#pragma unroll
    for (int quad = 0; quad < kHeadDim / 32; ++quad) {
      unsigned words[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int i = 4 * (4 * quad + j) + 2 * h;
        words[j] = pack_pair(o[i] * inverse, o[i + 1] * inverse);
      }
      transpose_quad(words, t);
      const int column = 32 * quad + 8 * t;
      if (inside && column < launch.head_dim) ptx::store4(out + 2 * column, {words[0], words[1], words[2], words[3]});
    }
    if (inside && t == 0)
      *lse_of(launch, work, row + 8 * h) = saw ? state.most[h] * launch.scale + __logf(sum) : minus_infinity();
  }
}

// A tile of rows that sees no key at all.
__device__ __forceinline__ void store_nothing(const Launch& launch, const Work& work, int row, int lane) {
  for (int h = 0; h < 2; ++h) {
    if (row + 8 * h >= launch.queries) continue;
    const unsigned long long out = row_address(launch, work, row + 8 * h);
    for (int column = lane % 4 * 8; column < launch.head_dim; column += 32) ptx::store4(out + 2 * column, {0, 0, 0, 0});
    if (lane % 4 == 0) *lse_of(launch, work, row + 8 * h) = minus_infinity();
  }
}
