// Outputs of rows that heads of a group may share, by spans of columns; and of rows that see nothing.
#pragma once
#include "packed_rows.cuh"

// Of a row four columns from `column` on, and as many every `Step` columns.
template <int Step, int Count>
__device__ __forceinline__ void store_spans(const Launch& launch, const Work& work, int row, int column,
                                            const float (&o)[Count], float sum, float offset) {
  const OfRow mine(work, row);
  const bool none = offset == minus_infinity();
  // As scale_offsets: what overflows with the scale makes its row NaN.
  const Finish found = mine.finished(launch, none ? 0.f : sum + (offset - offset), none ? 0.f : offset);
  const int first = column - lead_of_outputs(launch, work);
  const ptx::u64 out = mine.address(launch) + 2 * first;
#pragma unroll
  for (int i = 0, at = 0; i < Count; i += 4, at += Step) {
    if (!is_within(first + at, out_columns(launch))) {
      if (kLead) continue;
      break;
    }
    ptx::store2(out + 2 * at, pack_pair(o[i] * found.inverse, o[i + 1] * found.inverse),
                pack_pair(o[i + 2] * found.inverse, o[i + 3] * found.inverse));
  }
  if (column == 0) *mine.lse(launch) = found.lse;
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
