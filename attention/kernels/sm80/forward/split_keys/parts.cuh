// What the blocks of a tile leave in global memory, row by row, and which of them arrives last: that one adds it up
// (added_parts.cuh). Rows that no query uses, which of a single token's are all but a few, are neither left nor read.
//
// Of a row a part leaves its outputs, which no sum divides yet, and the offset and the sum of its p. Offsets are in
// log2, but those of a part whose rows ran a second time in units of scores (online_softmax.cuh): the signs of their
// sums say so.
#pragma once
#include "offset.cuh"
#include "work.cuh"

// Four columns of what others have of a row.
__device__ __forceinline__ void add_four(float* o, float weight, const ptx::vec4& some) {
  o[0] += weight * __uint_as_float(some.x);
  o[1] += weight * __uint_as_float(some.y);
  o[2] += weight * __uint_as_float(some.z);
  o[3] += weight * __uint_as_float(some.w);
}

struct Parts {
  static constexpr int kState = 4, kRowFloats = kValueDim + kState;

  const Launch& launch;
  const Work& work;  // with all keys
  const int tile, count;

  // A part's outputs of a row of the tile, and behind them its offset and sum.
  __device__ __forceinline__ ptx::u64 row_of(int number, int row) const {
    const long long block = static_cast<long long>(tile) * launch.key_splits + number;
    return reinterpret_cast<ptx::u64>(launch.partials) + 4 * ((block * launch.part_rows + row) * kRowFloats);
  }

  // Of the tile, those that a query uses: the first ones.
  __device__ __forceinline__ int used_rows() const {
    return min(launch.part_rows, work.queries * work.group - work.row);
  }

  // By a warp. Two neighbouring lanes trade words, so that each has four columns.
  template <class Rows>
  __device__ __forceinline__ void leave(const Rows& rows, int number) const {
    const int lane = rows.lane(), used = used_rows();
    const bool odd = lane % 2, second = ptx::load_shared(rows.at.second_time) != 0;
#pragma unroll
    for (int m = 0; m < kPanels; ++m)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const auto& o = rows.o[m];
        const int row = rows.warp_row() + m * 16 + lane / 4 + 8 * h;
        const bool is_used = row < used;
        const ptx::u64 to = row_of(number, row);
#pragma unroll
        for (int j = 0; j < kValueDim / 8; j += 2) {
          const int a = 4 * j + 2 * h, b = a + 4;
          const float first = __shfl_xor_sync(~0u, odd ? o[a] : o[b], 1);
          const float next = __shfl_xor_sync(~0u, odd ? o[a + 1] : o[b + 1], 1);
          const ptx::vec4 four = odd ? words(first, next, o[b], o[b + 1]) : words(o[a], o[a + 1], first, next);
          ptx::store4_if(is_used, to + 4 * (8 * (j + odd) + lane % 4 / 2 * 4), four);
        }
        const float sum = RowPair<kValueDim / 2>::sum(rows.state[m].sum[h]);
        const Offset offset{rows.state[m].offset[h], second};
        ptx::store4_if(is_used && lane % 4 == 0, to + 4 * kValueDim,
                       {__float_as_uint(offset.value), offset.marked(sum), 0, 0});
      }
  }

  // By a thread that has four columns of a row from `column` on, and as many every `Step` columns. Who has the first ones
  // leaves the row's offset and sum.
  template <int Step, int Count>
  __device__ __forceinline__ void leave_spans(int number, int row, int column, const float (&o)[Count], float sum,
                                              const Offset& offset) const {
    const ptx::u64 to = row_of(number, row);
#pragma unroll
    for (int i = 0, at = column; i < Count; i += 4, at += Step)
      ptx::store4(to + 4 * at, words(o[i], o[i + 1], o[i + 2], o[i + 3]));
    if (column == 0) ptx::store4(to + 4 * kValueDim, {__float_as_uint(offset.value), offset.marked(sum), 0, 0});
  }

  // Whether this block is the last one of its tile. One thread's count serves all: the barrier brings their stores
  // before the first, and their loads behind the second.
  __device__ __forceinline__ bool arrive(unsigned room) const {
    __syncthreads();
    if (threadIdx.x == 0) {
      int* counter = launch.arrivals + tile;
      const bool last = ptx::count_ordered(counter) == count - 1;
      if (last) *counter = 0;  // as the next launch on this stream expects it
      ptx::store_shared(room, last);
    }
    __syncthreads();
    return ptx::load_shared(room);
  }

  __device__ __forceinline__ static ptx::vec4 words(float x, float y, float z, float w) {
    return {__float_as_uint(x), __float_as_uint(y), __float_as_uint(z), __float_as_uint(w)};
  }
};
