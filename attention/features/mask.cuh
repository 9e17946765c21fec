// A mask of bytes, 0 hides. What lies outside of the tensor is not read.
#pragma once

// `row` and `column` are those of s[0].
template <class Scores>
__device__ __forceinline__ void change_mask(Scores& s, const Launch& launch, const Work& work, int row, int column) {
  const unsigned char* bytes = launch.mask + work.batch * launch.mask_batch + work.head * launch.mask_head;
#pragma unroll
  for (int i = 0; i < Scores::kCount; ++i) {
    const int at_row = row + Scores::row(i), at_key = column + Scores::column(i);
    if (at_row >= work.queries || at_key >= work.keys) continue;
    if (!bytes[at_row * launch.mask_row + (at_key + (kRanges ? work.skipped : 0)) * launch.mask_key])
      s[i] = minus_infinity();
  }
}
