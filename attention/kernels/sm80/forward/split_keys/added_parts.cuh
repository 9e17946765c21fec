// The softmax of all parts of a tile, by the block that arrives last (parts.cuh).
//
// A thread adds spans of four columns of a row, as far apart as there are spans, so that neighbouring threads read
// neighbouring bytes. It asks for a batch of parts at once, their outputs and what they weigh by: all of it waits for the
// L2 once. Parts are added in their order: the same bits, whoever is last.
//
// Of more columns than threads take at four each, a thread has several spans: what finds a row and weighs its parts is
// done once for all of them. The 48 rows of 6 queries and 8 heads took 12 passes of 670 cycles at head dim 128.
#pragma once
#include "parts.cuh"
#include "store_group.cuh"

template <int AtOnce, int Spans>
struct AddedParts {
  static constexpr int kAtOnce = AtOnce, kStep = kValueDim / Spans, kChunks = kStep / 4;

  const Parts& parts;
  const Launch& launch;

  // Of a row: what was added so far, counted from `most`.
  float o[4 * Spans], sum;
  Offset most;

  __device__ __forceinline__ explicit AddedParts(const Parts& parts) : parts(parts), launch(parts.launch) {}

  __device__ __forceinline__ void store() {
    const int rows = parts.used_rows();
#pragma unroll 1
    for (int at = threadIdx.x; at < rows * kChunks; at += kThreads) {
      const int row = at / kChunks, column = at % kChunks * 4;
      if (!kLead && column >= out_columns(launch)) continue;
#pragma unroll
      for (float& x : o) x = 0.f;
      sum = 0.f;
      most = {minus_infinity(), false};
#pragma unroll 1
      for (int number = 0; number < parts.count; number += kAtOnce) add(row, column, number);
      store_spans<kStep>(launch, parts.work, parts.work.row + row, column, o, sum, most.in_log2(launch.scale_log2));
    }
  }

  // The next parts of a row: what there is so far, and they, against the largest of all offsets.
  __device__ __forceinline__ void add(int row, int column, int begin) {
    ptx::vec4 some[kAtOnce][Spans];
    ptx::u64 states[kAtOnce];
    const ptx::u64 from = parts.row_of(begin, row);
    const int stride = 4 * launch.part_rows * Parts::kRowFloats;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      states[i] = __float_as_uint(minus_infinity());
#pragma unroll
      for (ptx::vec4& four : some[i]) four = {0, 0, 0, 0};
      if (begin + i >= parts.count) continue;
      states[i] = ptx::load2_cg(from + i * stride + 4 * kValueDim);
      ask(some[i], from + i * stride, column);
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
      ptx::vec4 some[Spans];
      ask(some, from, column);
      join(mine.against(most, launch.scale_log2), sum_of(state), some);
    }
  }

  __device__ __forceinline__ static void ask(ptx::vec4 (&some)[Spans], ptx::u64 from, int column) {
#pragma unroll
    for (int span = 0; span < Spans; ++span) some[span] = ptx::load4_cg(from + 4 * (column + span * kStep));
  }

  __device__ __forceinline__ void rescale(float kept) {
    sum *= kept;
#pragma unroll
    for (float& x : o) x *= kept;
  }

  __device__ __forceinline__ void join(float weight, unsigned part, const ptx::vec4 (&some)[Spans]) {
    sum += weight * fabsf(__uint_as_float(part));
#pragma unroll
    for (int span = 0; span < Spans; ++span) add_four(o + 4 * span, weight, some[span]);
  }

  __device__ __forceinline__ static float offset_of(ptx::u64 state) {
    return __uint_as_float(static_cast<unsigned>(state));
  }
  __device__ __forceinline__ static unsigned sum_of(ptx::u64 state) { return state >> 32; }
};

// What is run most often stands first. It is on its way while the block waits for its count, and what stands 30 KB behind
// came 0.3 to 1.4 us later (H200, added_parts.csv): so a build has no more of these loops than its rows ask for.
__device__ __forceinline__ void store_parts(const Parts& parts) {
  constexpr int kFew = 8, kMany = BLOCKS > 2 ? kFew : 16;  // as registers allow
  if constexpr (kKeyWarps == 1)
    AddedParts<4, 4>(parts).store();
  else if (__builtin_expect(parts.used_rows() * (kValueDim / 4) > kThreads, false))
    AddedParts<kFew, 2>(parts).store();
  else if (parts.count > kFew)
    AddedParts<kMany, 1>(parts).store();
  else  // of few parts a batch of many costs 0.3 us more, by the parts that there are not (H100)
    AddedParts<kFew, 1>(parts).store();
}
