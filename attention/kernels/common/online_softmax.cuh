// Online softmax over the accumulator fragment that mma.sync and wgmma share: a thread holds two rows, g and g + 8, and
// of each two neighbouring columns in every eight.
//
//   s[4j + 2h + e]   row g + 8h, column 8j + 2t + e       g = lane / 4, t = lane % 4
//
// Scores stay as the products left them; the softmax scale enters with log2(e) in one FFMA before each exp2.
#pragma once
#include "ptx/math.cuh"

__device__ __forceinline__ float minus_infinity() { return __uint_as_float(0xff800000u); }

// Per row: the largest score so far, and this thread's part of the sum of exp2((s - most) * scale_log2).
struct Softmax {
  float most[2], sum[2];
};

__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}

__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

// Turn scores into p = exp2((s - most) * scale_log2) and bring the state up to date. `correction` is what the outputs
// so far must be multiplied by; the first tile has none. MaySeeNothing: a row may have no key yet, whose most is -inf.
template <bool First, bool MaySeeNothing, int Count>
__device__ __forceinline__ void online_softmax(float (&s)[Count], Softmax& state, float (&correction)[2],
                                               float scale_log2) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float most = fmaxf(s[2 * h], s[2 * h + 1]);
#pragma unroll
    for (int j = 1; j < Count / 4; ++j) most = fmaxf(most, fmaxf(s[4 * j + 2 * h], s[4 * j + 2 * h + 1]));
    most = quad_max(First ? most : fmaxf(most, state.most[h]));
    const float offset = MaySeeNothing && most == minus_infinity() ? 0.f : most * scale_log2;
    if (!First) correction[h] = ptx::ex2(state.most[h] * scale_log2 - offset);
    state.most[h] = most;
    float sum = 0.f;
#pragma unroll
    for (int j = 0; j < Count / 4; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float& x = s[4 * j + 2 * h + e];
        x = ptx::ex2(x * scale_log2 - offset);
        sum += x;
      }
    state.sum[h] = First ? sum : state.sum[h] * correction[h] + sum;
  }
}

template <int Count>
__device__ __forceinline__ void rescale(float (&o)[Count], const float (&correction)[2]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) o[i] *= correction[i / 2 % 2];
}
