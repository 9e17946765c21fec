// Online softmax over the accumulator fragment that mma.sync and wgmma share: a thread holds two rows, g and g + 8, and
// of each two neighbouring columns in every eight.
//
//   s[4j + 2h + e]   row g + 8h, column 8j + 2t + e       g = lane / 4, t = lane % 4
//
// Scores stay as the products left them; the softmax scale enters with log2(e) in one FFMA before each exp2.
#pragma once
#include "ptx/math.cuh"

__device__ __forceinline__ float minus_infinity() { return __uint_as_float(0xff800000u); }

// Per row: a score that none so far exceeds by much, what exp2 subtracts for it, and this thread's part of the sum of
// p = exp2(s * scale_log2 - offset).
struct Softmax {
  float most[2], offset[2], sum[2];
};

__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}

__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

// Bring the largest scores up to date. `correction` is what the outputs so far must be multiplied by; the first tile
// has none. MaySeeNothing: a row may have no key yet, whose most is -inf.
template <bool First, bool MaySeeNothing, int Count>
__device__ __forceinline__ void raise_maxima(const float (&s)[Count], Softmax& state, float (&correction)[2],
                                             float scale_log2) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float most = fmaxf(s[2 * h], s[2 * h + 1]);
#pragma unroll
    for (int j = 1; j < Count / 4; ++j) most = fmaxf(most, fmaxf(s[4 * j + 2 * h], s[4 * j + 2 * h + 1]));
    most = quad_max(First ? most : fmaxf(most, state.most[h]));
    state.offset[h] = MaySeeNothing && most == minus_infinity() ? 0.f : most * scale_log2;
    if (!First) correction[h] = ptx::ex2(state.most[h] * scale_log2 - state.offset[h]);
    state.most[h] = most;
    state.sum[h] = First ? 0.f : state.sum[h] * correction[h];
  }
}

// Whether a score of this thread exceeds its row's largest so far by more than `slack`. As long as none in the warp
// does, an old maximum serves as well: p stays below 2^8 and the last division takes it out again (FlashAttention-4
// rescales by the same rule). Scores are compared as integers, three in one VIMNMX3, which orders all floats against
// a positive limit; against another one the answer is yes.
template <int Count>
__device__ __forceinline__ bool exceeds(const float (&s)[Count], const Softmax& state, float slack) {
  bool any = false;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    int peak = max(__float_as_int(s[2 * h]), __float_as_int(s[2 * h + 1]));
#pragma unroll
    for (int j = 1; j < Count / 4; ++j)
      peak = max(max(__float_as_int(s[4 * j + 2 * h]), __float_as_int(s[4 * j + 2 * h + 1])), peak);
    const float limit = state.most[h] + slack;
    any |= !(limit > 0.f) || peak > __float_as_int(limit);
  }
  return any;
}

// All scores become p, and join the sums.
template <int Count>
__device__ __forceinline__ void exponentials(float (&s)[Count], Softmax& state, float scale_log2) {
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    s[i] = ptx::ex2(s[i] * scale_log2 - state.offset[i / 2 % 2]);
    state.sum[i / 2 % 2] += s[i];
  }
}

template <int Count>
__device__ __forceinline__ void rescale(float (&o)[Count], const float (&correction)[2]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) o[i] *= correction[i / 2 % 2];
}

// Raise offsets to the largest score of the tile where that is larger; whether any rose. An offset is -inf until its
// row has seen a key, so that p against it would be +inf.
template <int Count>
__device__ __forceinline__ bool raise_offsets(const float (&s)[Count], Softmax& state, float (&correction)[2],
                                              float scale_log2) {
  bool rose = false;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float most = fmaxf(s[2 * h], s[2 * h + 1]);
#pragma unroll
    for (int j = 1; j < Count / 4; ++j) most = fmaxf(most, fmaxf(s[4 * j + 2 * h], s[4 * j + 2 * h + 1]));
    most = quad_max(most);
    const float next = fmaxf(state.offset[h], most == minus_infinity() ? most : most * scale_log2);
    const bool higher = next > state.offset[h];
    correction[h] = higher ? ptx::ex2(state.offset[h] - next) : 1.f;
    state.offset[h] = next;
    state.sum[h] *= correction[h];
    rose |= higher;
  }
  return rose;
}

// All scores become p and join the sums, in rows that may have seen no key.
template <int Count>
__device__ __forceinline__ void exponentials_of_seen(float (&s)[Count], Softmax& state, float scale_log2) {
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    const float offset = state.offset[i / 2 % 2];
    s[i] = ptx::ex2(s[i] * scale_log2 - (offset == minus_infinity() ? 0.f : offset));
    state.sum[i / 2 % 2] += s[i];
  }
}
