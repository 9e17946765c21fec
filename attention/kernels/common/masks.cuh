// Masks on the accumulator fragment of online_softmax.cuh.
#pragma once
#include "online_softmax.cuh"

// Hide the keys of a tile that lie outside of [begin, end) of a row. `column` is the key of s[0], and begin and end are
// given for row g; row g + 8 sees `shift` more at either side.
template <bool Begin, int Count>
__device__ __forceinline__ void hide_outside(float (&s)[Count], int column, int begin, int end, int keys, int shift) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int last = min(keys, end + h * shift) - column, first = begin + h * shift - column;
#pragma unroll
    for (int j = 0; j < Count / 4; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int at = 8 * j + e;
        if (at >= last || (Begin && at < first)) s[4 * j + 2 * h + e] = minus_infinity();
      }
  }
}
