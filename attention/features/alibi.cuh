// Subtract slope * |distance to the diagonal|. launch.alibi_scale, log2(e) / scale_log2, is what a slope is worth among
// raw scores.
#pragma once
#include "ptx/read_only.cuh"

template <class Scores>
__device__ __forceinline__ void change_alibi(Scores& s, const Launch& launch, const Work& work, int row, int column) {
  const float* of_head = launch.alibi + work.batch * launch.alibi_batch + work.head * launch.alibi_head;
  const float slope = __uint_as_float(ptx::read_only(reinterpret_cast<const unsigned*>(of_head))) * launch.alibi_scale;
  const float ahead = row + work.keys - work.queries - column;  // the diagonal's key of row g less the key of s[0]
#pragma unroll
  for (int i = 0; i < Scores::kCount; ++i) {
    s[i] -= slope * fabsf(ahead + (Scores::row(i) - Scores::column(i)));
  }
}
