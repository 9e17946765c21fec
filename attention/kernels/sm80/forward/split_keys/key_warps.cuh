// What warps that share rows have of their keys (key_loop.cuh) is brought together in shared memory, where tiles lay: each
// leaves the rows that a query uses, and a thread adds up four columns of a row, one warp's after the other's.
//
// Halves of warps that added fragments to each other's, all 16 rows of them, left the last step and all that follows to
// one warp: 0.9 us until that had all keys, and as much until its outputs were stored, of calls of 9 (H200,
// decode_ends.csv).
#pragma once
#include "key_loop.cuh"
#include "parts.cuh"
#include "ptx/shared_pair.cuh"
#include "store_group.cuh"

template <class Rows>
struct KeyWarps {
  static_assert(kPanels == 1);

  const Rows& rows;

  // A warp's row of the tile: its outputs, which no sum divides yet, and behind them its offset and sum.
  __device__ __forceinline__ unsigned row_of(int key_warp, int row) const {
    return rows.at.v + 4 * kJoinedFloats * (key_warp * kTileRows + row);
  }

  // By each warp, of its rows below `used`. Tiles were read before, as the barrier of Pipeline::settled says.
  __device__ __forceinline__ void leave(int used) const {
    const int lane = rows.lane();
    const Softmax<2>& state = rows.state[0];
    const auto& o = rows.o[0];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (rows.warp_row() + 8 * h >= used) break;
      const int row = rows.warp_row() + 8 * h + lane / 4;
      const float sum = RowPair<kValueDim / 2>::sum(state.sum[h]);
      if (row >= used) continue;
      const unsigned to = row_of(rows.key_warp(), row), mine = to + 8 * (lane % 4);
#pragma unroll
      for (int j = 0; j < kValueDim / 8; ++j)
        ptx::store_shared2(mine + 32 * j, __float_as_uint(o[4 * j + 2 * h]), __float_as_uint(o[4 * j + 2 * h + 1]));
      if (lane % 4 == 0) ptx::store_shared2(to + 4 * kValueDim, __float_as_uint(state.offset[h]), __float_as_uint(sum));
    }
  }

  // By all threads, behind a barrier. `take` gets a row, the first of its columns that are added, in spans of four as far
  // apart as there are spans, what they add up to, and the row's sum and offset. `unit`: of a difference of offsets, in
  // log2.
  template <int Spans, class Take>
  __device__ __forceinline__ void add_up(int used, float unit, const Take& take) const {
    constexpr int kStep = kValueDim / Spans, kChunks = kStep / 4;
#pragma unroll 1
    for (int at = threadIdx.x; at < used * kChunks; at += kThreads) {
      const int row = at / kChunks, column = at % kChunks * 4;
      float offset[kKeyWarps], part[kKeyWarps], most = minus_infinity();
      ptx::vec4 some[kKeyWarps][Spans];
#pragma unroll
      for (int warp = 0; warp < kKeyWarps; ++warp) {
        const unsigned from = row_of(warp, row);
        const ptx::u64 state = ptx::load_shared2(from + 4 * kValueDim);
        offset[warp] = __uint_as_float(static_cast<unsigned>(state));
        part[warp] = __uint_as_float(static_cast<unsigned>(state >> 32));
        most = fmaxf(most, offset[warp]);
#pragma unroll
        for (int span = 0; span < Spans; ++span)
          some[warp][span] = ptx::load_shared4(from + 4 * (column + span * kStep));
      }
      const float base = most == minus_infinity() ? 0.f : most;
      float o[4 * Spans] = {}, sum = 0.f;
#pragma unroll
      for (int warp = 0; warp < kKeyWarps; ++warp) {
        const float weight = ptx::ex2((offset[warp] - base) * unit);
        sum += weight * part[warp];
#pragma unroll
        for (int span = 0; span < Spans; ++span) add_four(o + 4 * span, weight, some[warp][span]);
      }
      take(row, column, o, sum, most);
    }
  }
};

// The outputs of a tile's rows, or what a part leaves of them. `far`: its offsets are in units of scores.
template <class Rows>
__device__ __forceinline__ void leave_key_warps(const Rows& rows, const Parts& parts, int number, bool far) {
  constexpr int kMany = 4;  // spans, where rows are too many for a thread to have one: one way to a row for all of them
  const int used = parts.used_rows();
  const float unit = far ? parts.launch.scale_log2 : 1.f;
  const KeyWarps<Rows> warps{rows};
  warps.leave(used);
  __syncthreads();
  const auto take = [&](int row, int column, const auto& o, float sum, float offset) {
    constexpr int kStep = 4 * kValueDim / (sizeof(o) / sizeof(float));
    if (parts.count == 1)
      store_spans<kStep>(parts.launch, parts.work, parts.work.row + row, column, o, sum, offset * unit);
    else
      parts.leave_spans<kStep>(number, row, column, o, sum, {offset, far});
  };
  if (used * (kValueDim / 4) > kThreads)
    warps.template add_up<kMany>(used, unit, take);
  else
    warps.template add_up<1>(used, unit, take);
}
