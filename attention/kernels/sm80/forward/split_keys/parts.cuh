// What the blocks of a tile leave in global memory, row by row, and the softmax of all of them by the block that arrives
// last. Rows that no query uses, which of a single token's are all but a few, are neither left nor read.
//
// Of a row a part leaves its outputs, which no sum divides yet, and the offset and the sum of its p. Offsets are in
// log2, but those of a part whose rows ran a second time in units of scores (online_softmax.cuh): the signs of their
// sums say so. Parts are added in their order: the same bits, whoever is last.
#pragma once
#include "offset.cuh"
#include "store_group.cuh"

struct Parts {
  static constexpr int kState = 4, kRowFloats = kValueDim + kState, kChunks = kValueDim / 8;
  static constexpr int kAtOnce = 8;  // parts of which the L2 is asked before the first has come

  const Launch& launch;
  const Work& work;  // with all keys
  const int tile, count;

  // A part's outputs of a row of the tile, and behind them its offset and sum.
  __device__ __forceinline__ ptx::u64 row_of(int number, int row) const {
    const long long block = static_cast<long long>(tile) * launch.key_splits + number;
    return reinterpret_cast<ptx::u64>(launch.partials) + 4 * ((block * launch.part_rows + row) * kRowFloats);
  }

  // By a warp. Two neighbouring lanes trade words, so that each has four columns.
  template <class Rows>
  __device__ __forceinline__ void leave(const Rows& rows, int number) const {
    const int lane = rows.lane();
    const bool odd = lane % 2, second = ptx::load_shared(rows.at.second_time) != 0;
#pragma unroll
    for (int m = 0; m < kPanels; ++m)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const auto& o = rows.o[m];
        const int row = rows.warp_row() + m * 16 + lane / 4 + 8 * h;
        const bool used = work.query_of(work.row + row) < work.queries;
        const ptx::u64 to = row_of(number, row);
#pragma unroll
        for (int j = 0; j < kValueDim / 8; j += 2) {
          const int a = 4 * j + 2 * h, b = a + 4;
          const float first = __shfl_xor_sync(~0u, odd ? o[a] : o[b], 1);
          const float next = __shfl_xor_sync(~0u, odd ? o[a + 1] : o[b + 1], 1);
          const ptx::vec4 four = odd ? words(first, next, o[b], o[b + 1]) : words(o[a], o[a + 1], first, next);
          ptx::store4_if(used, to + 4 * (8 * (j + odd) + lane % 4 / 2 * 4), four);
        }
        const float sum = RowPair<kValueDim / 2>::sum(rows.state[m].sum[h]);
        const Offset offset{rows.state[m].offset[h], second};
        ptx::store4_if(used && lane % 4 == 0, to + 4 * kValueDim,
                       {__float_as_uint(offset.value), offset.marked(sum), 0, 0});
      }
  }

  // Whether this block is the last one of its tile. One thread's fences serve all: the barrier brings their stores
  // before the first, and their loads behind the second.
  __device__ __forceinline__ bool arrive(unsigned room) const {
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      const bool last = atomicAdd(launch.arrivals + tile, 1) == count - 1;
      __threadfence();
      if (last) launch.arrivals[tile] = 0;  // as the next launch on this stream expects it
      ptx::store_shared(room, last);
    }
    __syncthreads();
    return ptx::load_shared(room);
  }

  // Outputs of all rows, a thread eight columns of a row at a time.
  __device__ __forceinline__ void add_up() const {
#pragma unroll 1
    for (int at = threadIdx.x; at < launch.part_rows * kChunks; at += kThreads) {
      const int row = at / kChunks, column = at % kChunks * 8;
      const bool used = work.query_of(work.row + row) < work.queries;
      if (column >= out_columns(launch) || !used) continue;
      float o[8] = {}, sum = 0.f;
      Offset most{minus_infinity(), false};
#pragma unroll 1
      for (int number = 0; number < count; number += kAtOnce) add(o, sum, most, row, column, number);
      store_chunk(launch, work, work.row + row, column, o, sum, most.in_log2(launch.scale_log2));
    }
  }

  // The next parts of a row: what there is so far, and they, against the largest of all offsets.
  __device__ __forceinline__ void add(float (&o)[8], float& sum, Offset& most, int row, int column, int begin) const {
    ptx::vec4 state[kAtOnce], some[kAtOnce][2];
    unsigned marks = most.in_scores ? Offset::kMark : 0;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const ptx::u64 from = row_of(min(begin + i, count - 1), row);
      state[i] = ptx::load4_cg(from + 4 * kValueDim);
      some[i][0] = ptx::load4_cg(from + 4 * column);
      some[i][1] = ptx::load4_cg(from + 4 * column + 16);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) marks |= state[i].y;
    if (marks & Offset::kMark) return add_one_by_one(o, sum, most, row, column, begin);
    float next = most.value;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) next = fmaxf(next, __uint_as_float(state[i].x));
    const float base = next == minus_infinity() ? 0.f : next;
    rescale(o, sum, ptx::ex2(most.value - base));
    most.value = next;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const float weight = begin + i < count ? ptx::ex2(__uint_as_float(state[i].x) - base) : 0.f;
      join(o, sum, weight, state[i].y, some[i]);
    }
  }

  // The same where some are in units of scores, which is rare: in a loop, that the usual way is short.
  __device__ __forceinline__ void add_one_by_one(float (&o)[8], float& sum, Offset& most, int row, int column,
                                                 int begin) const {
#pragma unroll 1
    for (int number = begin; number < min(begin + kAtOnce, count); ++number) {
      const ptx::u64 from = row_of(number, row);
      const ptx::vec4 state = ptx::load4_cg(from + 4 * kValueDim);
      const ptx::vec4 some[2] = {ptx::load4_cg(from + 4 * column), ptx::load4_cg(from + 4 * column + 16)};
      const Offset before = most, mine = Offset::of(state.x, state.y);
      most = larger(most, mine, launch.scale_log2);
      rescale(o, sum, before.against(most, launch.scale_log2));
      join(o, sum, mine.against(most, launch.scale_log2), state.y, some);
    }
  }

  __device__ __forceinline__ static void rescale(float (&o)[8], float& sum, float kept) {
    sum *= kept;
#pragma unroll
    for (int i = 0; i < 8; ++i) o[i] *= kept;
  }

  __device__ __forceinline__ static void join(float (&o)[8], float& sum, float weight, unsigned part,
                                              const ptx::vec4 (&some)[2]) {
    sum += weight * fabsf(__uint_as_float(part));
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      o[4 * j] += weight * __uint_as_float(some[j].x);
      o[4 * j + 1] += weight * __uint_as_float(some[j].y);
      o[4 * j + 2] += weight * __uint_as_float(some[j].z);
      o[4 * j + 3] += weight * __uint_as_float(some[j].w);
    }
  }

  __device__ __forceinline__ static ptx::vec4 words(float x, float y, float z, float w) {
    return {__float_as_uint(x), __float_as_uint(y), __float_as_uint(z), __float_as_uint(w)};
  }
};
