// Outputs in the fragment of online_softmax.cuh, from registers to global memory: no shared memory, no barrier, any
// stride. config.cuh, through work.cuh, is the kernel's own.
//
// Four lanes hold the four pairs of columns in every eight. They trade words so that each has eight neighbouring
// columns of one row: 16 bytes a lane, 64 a quad, whole sectors.
#pragma once
#include "features.cuh"
#include "lead.cuh"
#include "online_softmax.cuh"
#include "ptx/convert.cuh"
#include "ptx/memory.cuh"
#include "value_dim.cuh"

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

// `row` counts within the sequence.
__device__ __forceinline__ unsigned long long row_address(const Launch& launch, const Work& work, int row) {
  const long long element =
      work.plane * launch.out_batch + work.head * launch.out_head + (work.query_start + row) * launch.out_row;
  return reinterpret_cast<unsigned long long>(launch.out) + 2 * element;
}

__device__ __forceinline__ float* lse_of(const Launch& launch, const Work& work, int row) {
  const long long head = static_cast<long long>(work.plane) * launch.heads + work.head;
  return launch.lse + head * launch.queries + work.query_start + row;
}

// What a row's outputs are multiplied by, and its lse.
struct Finish {
  float inverse, lse;
};

// A row that saw no key gives 0 and -inf. `logit` is one more of its softmax, which has no value.
__device__ __forceinline__ Finish finish(float sum, float offset, float logit) {
  constexpr float kLn2 = 0.693147181f, kLog2e = 1.44269504f;
  const float sink = logit * kLog2e;
  const bool saw = !(sum == 0.f);
  if (!kLogit) return {saw ? 1.f / sum : 0.f, saw ? kLn2 * offset + __logf(sum) : minus_infinity()};
  const float before = saw ? offset : minus_infinity(), most = fmaxf(before, sink);
  if (most == minus_infinity()) return {0.f, minus_infinity()};
  const float scale = ptx::ex2(before - most), total = sum * scale + ptx::ex2(sink - most);
  return {scale / total, kLn2 * most + __logf(total)};
}

// Rows that no query uses, by the lanes that have rows `row` and `row` + 8 as in store_rows: zeros, and -inf under a
// sink too.
__device__ __forceinline__ void store_unused(const Launch& launch, const Work& work, int row, int lane) {
  for (int h = 0; h < 2; ++h) {
    const int mine = row + 8 * h;
    if (mine < work.queries || mine >= work.rows) continue;
    const unsigned long long out = row_address(launch, work, mine);
    for (int column = lane % 4 * 8; column < out_columns(launch); column += 32)
      ptx::store4(out + 2 * column, {0, 0, 0, 0});
    if (lane % 4 == 0) *lse_of(launch, work, mine) = minus_infinity();
  }
}

// `row` is the row of o[0].
__device__ __forceinline__ void store_rows(const Launch& launch, const Work& work, int row, int lane,
                                           const RowPair<kValueDim / 2>& o, const Softmax<2>& state) {
  const int t = lane % 4;
  const float sink = kLogit ? logit(launch, work) : 0.f;
  const int lead = lead_of_outputs(launch, work);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const Finish finished = finish(RowPair<kValueDim / 2>::sum(state.sum[h]), state.offset[h], sink);
    const bool inside = row + 8 * h < work.queries;
    const unsigned long long out = row_address(launch, work, row + 8 * h);
#pragma unroll
    for (int quad = 0; quad < (kValueDim + 31) / 32; ++quad) {
      unsigned words[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int i = 4 * (4 * quad + j) + 2 * h;
        words[j] = i < kValueDim / 2 ? pack_pair(o[i] * finished.inverse, o[i + 1] * finished.inverse) : 0;
      }
      transpose_quad(words, t);
      const int column = 32 * quad + 8 * t - lead;
      ptx::store4_if(inside && is_within(column, out_columns(launch)), out + 2 * column,
                     {words[0], words[1], words[2], words[3]});
    }
    ptx::store_if(inside && t == 0, reinterpret_cast<ptx::u64>(lse_of(launch, work, row + 8 * h)),
                  __float_as_uint(finished.lse));
  }
  if constexpr (kRanges) store_unused(launch, work, row, lane);
}

// A tile of rows that sees no key at all.
__device__ __forceinline__ void store_nothing(const Launch& launch, const Work& work, int row, int lane) {
  for (int h = 0; h < 2; ++h) {
    if (row + 8 * h >= work.queries) continue;
    const unsigned long long out = row_address(launch, work, row + 8 * h);
    for (int column = lane % 4 * 8; column < out_columns(launch); column += 32)
      ptx::store4(out + 2 * column, {0, 0, 0, 0});
    if (lane % 4 == 0) *lse_of(launch, work, row + 8 * h) = finish(0.f, 0.f, kLogit ? logit(launch, work) : 0.f).lse;
  }
  if constexpr (kRanges) store_unused(launch, work, row, lane);
}
