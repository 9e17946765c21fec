// A band of keys about the diagonal: query i sees keys j with i + left <= j <= i + right.
#pragma once

// Hide the keys of a tile that lie outside of the sequence or the band. `row` and `column` are those of s[0].
template <class Scores>
__device__ __forceinline__ void hide_outside(Scores& s, const Work& work, int row, int column) {
  const int begin = row + work.left, end = kCausal ? row + work.right + 1 : work.keys;
  const int step = kCausal || kWindow ? Scores::kStep : 0;  // the next row sees so many more at either side
#pragma unroll
  for (int h = 0; h < Scores::kRows; ++h) {
    const int further = kPackGqa ? work.query_of(row + h * Scores::kStep) - row : h * step;
    const int last = min(work.keys, end + (kCausal || !kPackGqa ? further : 0)) - column,
              first = begin + further - column;
#pragma unroll
    for (int i = 0; i < Scores::kCount; ++i) {
      if (Scores::line(i) != h) continue;
      if (Scores::column(i) >= last || (kWindow && Scores::column(i) < first)) s[i] = minus_infinity();
    }
  }
}
