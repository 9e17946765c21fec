// The softmax of all parts of a tile, by the block that arrives last (parts.cuh).
//
// A thread adds four columns of a row, so that neighbouring threads read neighbouring bytes. It asks for a batch of parts
// at once, their outputs and what they weigh by: all of it waits for the L2 once. Parts are added in their order: the
// same bits, whoever is last.
#pragma once
#include "parts.cuh"
#include "store_group.cuh"

template <int AtOnce>
struct AddedParts {
  static constexpr int kAtOnce = AtOnce, kColumns = 4, kChunks = kValueDim / kColumns;

  const Parts& parts;
  const Launch& launch;

  // Four columns of a row: what was added so far, counted from `most`.
  float o[kColumns], sum;
  Offset most;

  __device__ __forceinline__ explicit AddedParts(const Parts& parts) : parts(parts), launch(parts.launch) {}

  __device__ __forceinline__ void store() {
    const int rows = parts.used_rows();
#pragma unroll 1
    for (int at = threadIdx.x; at < rows * kChunks; at += kThreads) {
      const int row = at / kChunks, column = at % kChunks * kColumns;
      if (column >= out_columns(launch)) continue;
#pragma unroll
      for (float& x : o) x = 0.f;
      sum = 0.f;
      most = {minus_infinity(), false};
#pragma unroll 1
      for (int number = 0; number < parts.count; number += kAtOnce) add(row, column, number);
      store_four(launch, parts.work, parts.work.row + row, column, o, sum, most.in_log2(launch.scale_log2));
    }
  }

  // The next parts of a row: what there is so far, and they, against the largest of all offsets.
  __device__ __forceinline__ void add(int row, int column, int begin) {
    ptx::vec4 some[kAtOnce];
    ptx::u64 states[kAtOnce];
    const ptx::u64 from = parts.row_of(begin, row);
    const int stride = 4 * launch.part_rows * Parts::kRowFloats;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      some[i] = {0, 0, 0, 0};
      states[i] = __float_as_uint(minus_infinity());
      if (begin + i >= parts.count) continue;
      states[i] = ptx::load2_cg(from + i * stride + 4 * kValueDim);
      some[i] = ptx::load4_cg(from + i * stride + 4 * column);
    }
    unsigned marks = most.in_scores ? Offset::kMark : 0;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) marks |= sum_of(states[i]);
    if (marks & Offset::kMark) return add_one_by_one(row, column, begin);
    float next = most.value;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) next = fmaxf(next, offset_of(states[i]));
    const float base = next == minus_infinity() ? 0.f : next;
    rescale(ptx::ex2(most.value - base));
    most.value = next;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) join(ptx::ex2(offset_of(states[i]) - base), sum_of(states[i]), some[i]);
  }

  // The same where some are in units of scores, which is rare: in a loop, that the usual way is short.
  __device__ __forceinline__ void add_one_by_one(int row, int column, int begin) {
#pragma unroll 1
    for (int number = begin; number < min(begin + kAtOnce, parts.count); ++number) {
      const ptx::u64 from = parts.row_of(number, row), state = ptx::load2_cg(from + 4 * kValueDim);
      const Offset before = most, mine = Offset::of(state, sum_of(state));
      most = larger(most, mine, launch.scale_log2);
      rescale(before.against(most, launch.scale_log2));
      join(mine.against(most, launch.scale_log2), sum_of(state), ptx::load4_cg(from + 4 * column));
    }
  }

  __device__ __forceinline__ void rescale(float kept) {
    sum *= kept;
#pragma unroll
    for (float& x : o) x *= kept;
  }

  __device__ __forceinline__ void join(float weight, unsigned part, const ptx::vec4& some) {
    sum += weight * fabsf(__uint_as_float(part));
    o[0] += weight * __uint_as_float(some.x);
    o[1] += weight * __uint_as_float(some.y);
    o[2] += weight * __uint_as_float(some.z);
    o[3] += weight * __uint_as_float(some.w);
  }

  __device__ __forceinline__ static float offset_of(ptx::u64 state) {
    return __uint_as_float(static_cast<unsigned>(state));
  }
  __device__ __forceinline__ static unsigned sum_of(ptx::u64 state) { return state >> 32; }
};

// Of few parts a batch of many costs 0.3 us more, by the parts that there are not (H100).
__device__ __forceinline__ void store_parts(const Parts& parts) {
  constexpr int kFew = 8, kMany = BLOCKS > 2 ? kFew : 16;  // as registers allow
  if (parts.count <= kFew)
    AddedParts<kFew>(parts).store();
  else
    AddedParts<kMany>(parts).store();
}
