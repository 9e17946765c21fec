// Outputs of rows that heads of a group may share: each row's own head and query (store.cuh knows one head of a tile).
#pragma once
#include "features.cuh"
#include "ptx/memory.cuh"
#include "store.cuh"

// A tile's work as one of its rows has it.
struct OfRow {
  Work work;
  int query;

  __device__ __forceinline__ OfRow(const Work& tile, int row) : work(tile), query(tile.query_of(row)) {
    work.head = tile.head_of(row);
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

// Of a row four columns from `column` on, and as many every `Step` columns.
template <int Step, int Count>
__device__ __forceinline__ void store_spans(const Launch& launch, const Work& work, int row, int column,
                                            const float (&o)[Count], float sum, float offset) {
  const OfRow mine(work, row);
  const bool none = offset == minus_infinity();
  // As scale_offsets: what overflows with the scale makes its row NaN.
  const Finish found = mine.finished(launch, none ? 0.f : sum + (offset - offset), none ? 0.f : offset);
  const ptx::u64 out = mine.address(launch) + 2 * column;
#pragma unroll
  for (int i = 0, at = 0; i < Count; i += 4, at += Step) {
    if (column + at >= out_columns(launch)) break;
    ptx::store2(out + 2 * at, pack_pair(o[i] * found.inverse, o[i + 1] * found.inverse),
                pack_pair(o[i + 2] * found.inverse, o[i + 3] * found.inverse));
  }
  if (column == 0) *mine.lse(launch) = found.lse;
}

// A warp's fragment; `row` is that of o[0]. As store_rows has it.
__device__ __forceinline__ void store_fragment(const Launch& launch, const Work& work, int row, int lane,
                                               const RowPair<kValueDim / 2>& o, const Softmax<2>& state) {
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
      const int column = 32 * quad + 8 * (lane % 4);
      ptx::store4_if(mine.is_used() && column < out_columns(launch), out + 2 * column,
                     {words[0], words[1], words[2], words[3]});
    }
    ptx::store_if(mine.is_used() && lane % 4 == 0, reinterpret_cast<ptx::u64>(mine.lse(launch)),
                  __float_as_uint(found.lse));
  }
}

// Rows of a slot that no query uses, and where there is `nothing` to see the others as well.
__device__ __forceinline__ void store_unseen(const Launch& launch, const Work& work, bool nothing) {
  constexpr int kChunks = kValueDim / 8;
  if (!kRanges && !nothing) return;
#pragma unroll 1
  for (int at = threadIdx.x; at < launch.part_rows * kChunks; at += kThreads) {
    const int column = at % kChunks * 8;
    const OfRow mine(work, work.row + at / kChunks);
    const bool unused = kRanges && !mine.is_used() && mine.query < work.rows;
    if (column >= out_columns(launch) || !(unused || (nothing && mine.is_used()))) continue;
    ptx::store4(mine.address(launch) + 2 * column, {0, 0, 0, 0});
    if (column == 0) *mine.lse(launch) = unused ? minus_infinity() : mine.finished(launch, 0.f, 0.f).lse;
  }
}
