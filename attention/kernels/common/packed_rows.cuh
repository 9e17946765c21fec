// Outputs of rows that heads of a group may share: each row's own head and query (store.cuh knows one head of a tile).
#pragma once
#include "features.cuh"
#include "ptx/memory.cuh"
#include "store.cuh"

constexpr int kNobodys = 0x7fffffff;  // behind all queries

// A tile's work as one of its rows has it.
struct OfRow {
  Work work;
  int query;

  __device__ __forceinline__ OfRow(const Work& tile, int row) : work(tile), query(tile.query_of(row)) {
    work.head = tile.head_of(row);
    if constexpr (kPackGqa && kPackSpan > 1)
      if (!tile.has(row)) query = kNobodys;
  }

  __device__ __forceinline__ bool is_used() const { return query < work.queries; }
  __device__ __forceinline__ ptx::u64 address(const Launch& launch) const { return row_address(launch, work, query); }

  __device__ __forceinline__ Finish finished(const Launch& launch, float sum, float offset) const {
    return finish(sum, offset, kLogit ? logit(launch, work) : 0.f);
  }

  __device__ __forceinline__ float* lse(const Launch& launch) const {
    const long long head = static_cast<long long>(work.plane) * launch.heads * work.group + work.head;
    return launch.lse + head * launch.queries + work.query_start + query;
  }
};

// A warp's fragment; `row` is that of o[0]. As store_rows has it.
__device__ __forceinline__ void store_fragment(const Launch& launch, const Work& work, int row, int lane,
                                               const RowPair<kValueDim / 2>& o, const Softmax<2>& state) {
  const int lead = lead_of_outputs(launch, work);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const OfRow mine(work, row + 8 * h);
    const Finish found = mine.finished(launch, RowPair<kValueDim / 2>::sum(state.sum[h]), state.offset[h]);
    const ptx::u64 out = mine.address(launch);
#pragma unroll
    for (int quad = 0; quad < (kValueDim + 31) / 32; ++quad) {
      unsigned words[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int i = 4 * (4 * quad + j) + 2 * h;
        words[j] = i < kValueDim / 2 ? pack_pair(o[i] * found.inverse, o[i + 1] * found.inverse) : 0;
      }
      transpose_quad(words, lane % 4);
      const int column = 32 * quad + 8 * (lane % 4) - lead;
      ptx::store4_if(mine.is_used() && is_within(column, out_columns(launch)), out + 2 * column,
                     {words[0], words[1], words[2], words[3]});
    }
    ptx::store_if(mine.is_used() && lane % 4 == 0, reinterpret_cast<ptx::u64>(mine.lse(launch)),
                  __float_as_uint(found.lse));
  }
}

// By the lanes that have rows `row` and `row` + 8 of a fragment: those of its slot that no query uses, and where there is
// `nothing` to see the others as well.
__device__ __forceinline__ void store_none(const Launch& launch, const Work& work, int row, int lane, bool nothing) {
  for (int h = 0; h < 2; ++h) {
    const OfRow mine(work, row + 8 * h);
    const bool unused = kRanges && !mine.is_used() && mine.query < work.rows;
    if (!unused && !(nothing && mine.is_used())) continue;
    for (int column = lane % 4 * 8; column < out_columns(launch); column += 32)
      ptx::store4(mine.address(launch) + 2 * column, {0, 0, 0, 0});
    if (lane % 4 == 0) *mine.lse(launch) = unused ? minus_infinity() : mine.finished(launch, 0.f, 0.f).lse;
  }
}
