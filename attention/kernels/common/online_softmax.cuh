// Online softmax over the accumulator fragment that mma.sync and wgmma share: a thread holds two rows, g and g + 8, and
// of each two neighbouring columns in every eight.
//
//   s[4j + 2h + e]   row g + 8h, column 8j + 2t + e       g = lane / 4, t = lane % 4
//
// Scores stay as the products left them; the softmax scale enters with log2(e) in one FFMA before each exp2, of which the
// offset is most * scale_log2, rounded. What rounding took away stays in every exponent: below 1 for offsets below
// kFar, but 2^13 at 2^37, where exp2 of it is inf or 0. A row beyond is far, and its exponents are
// (s - most) * scale_log2, two instructions. What overflows float32 before or after the scale is inf as in torch's
// float32: a score of +inf makes its row NaN, and one of -inf hides its key.
#pragma once
#include "ptx/math.cuh"

__device__ __forceinline__ float minus_infinity() { return __uint_as_float(0xff800000u); }

__device__ __forceinline__ float not_a_number() { return __uint_as_float(0x7fffffffu); }

constexpr float kFar = 33554432.f;  // 2^25

__device__ __forceinline__ bool is_far(float offset) { return fabsf(offset) >= kFar; }

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

// Bring the largest scores up to date; whether a row of this thread is far. `correction` is what the outputs so far must
// be multiplied by; the first tile has none. A row that has no key yet, or none that counts, has the offset 0.
template <bool First, int Count>
__device__ __forceinline__ bool raise_maxima(const float (&s)[Count], Softmax& state, float (&correction)[2],
                                             float scale_log2) {
  bool far = false;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float most = fmaxf(s[2 * h], s[2 * h + 1]);
#pragma unroll
    for (int j = 1; j < Count / 4; ++j) most = fmaxf(most, fmaxf(s[4 * j + 2 * h], s[4 * j + 2 * h + 1]));
    most = quad_max(First ? most : fmaxf(most, state.most[h]));
    const float scaled = most * scale_log2;
    state.offset[h] = scaled == minus_infinity() ? 0.f : scaled;
    const bool beyond = is_far(state.offset[h]);
    if (!First) {
      const float before = state.most[h] - (beyond ? most : 0.f);
      correction[h] = ptx::ex2(__fmaf_rn(before, scale_log2, beyond ? 0.f : -state.offset[h]));
    }
    state.most[h] = most;
    state.sum[h] = First ? 0.f : state.sum[h] * correction[h];
    far |= beyond;
  }
  return far;
}

// Whether a score of this thread exceeds its row's largest so far by more than `slack`. As long as none in the warp
// does, an old maximum serves as well: p stays below 2^8 and the last division takes it out again (FlashAttention-4
// rescales by the same rule). Scores are compared as integers, three in one VIMNMX3, which orders all floats against
// a positive limit; against another one the answer is yes. Of a far row, the limit lies so much below the maximum that p
// of what does not exceed it is 0 by either way to an exponent.
template <int Count>
__device__ __forceinline__ bool exceeds(const float (&s)[Count], const Softmax& state, float slack) {
  bool any = false;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    int peak = max(__float_as_int(s[2 * h]), __float_as_int(s[2 * h + 1]));
#pragma unroll
    for (int j = 1; j < Count / 4; ++j)
      peak = max(max(__float_as_int(s[4 * j + 2 * h]), __float_as_int(s[4 * j + 2 * h + 1])), peak);
    const float limit = __fmaf_rn(state.most[h], 1.f - 0x1p-18f, slack);
    any |= !(limit > 0.f) || peak > __float_as_int(limit);
  }
  return any;
}

// All scores become p, and join the sums.
template <int Count>
__device__ __forceinline__ void exponentials(float (&s)[Count], Softmax& state, float scale_log2) {
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    s[i] = ptx::ex2(__fmaf_rn(s[i], scale_log2, -state.offset[i / 2 % 2]));
    state.sum[i / 2 % 2] += s[i];
  }
}

// Scores of far rows are counted from their largest while they become p, and what overflows with the scale is NaN.
template <int Count>
__device__ __forceinline__ void come_near(float (&s)[Count], Softmax& state) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    if (!is_far(state.offset[h])) continue;
    state.offset[h] -= state.offset[h];
#pragma unroll
    for (int i = 0; i < Count; ++i)
      if (i / 2 % 2 == h) s[i] -= state.most[h];
  }
}

__device__ __forceinline__ void go_back(Softmax& state, float scale_log2) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float scaled = state.most[h] * scale_log2;
    state.offset[h] = scaled == minus_infinity() ? 0.f : scaled;
  }
}

template <int Count>
__device__ __forceinline__ void rescale(float (&o)[Count], const float (&correction)[2]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) o[i] *= correction[i / 2 % 2];
}

// Raise offsets to the largest score of the tile where that is larger; whether any rose. An offset is -inf until its
// row has seen a key, so that p against it would be +inf. Of a far row the sum becomes NaN, by which it is run a second
// time: `far`, offsets are in units of scores.
template <int Count>
__device__ __forceinline__ bool raise_offsets(const float (&s)[Count], Softmax& state, float (&correction)[2],
                                              float scale_log2, bool far) {
  bool rose = false;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float most = fmaxf(s[2 * h], s[2 * h + 1]);
#pragma unroll
    for (int j = 1; j < Count / 4; ++j) most = fmaxf(most, fmaxf(s[4 * j + 2 * h], s[4 * j + 2 * h + 1]));
    most = quad_max(most);
    const float scaled = most * scale_log2;
    const float next = fmaxf(state.offset[h], far && scaled != minus_infinity() ? most : scaled);
    const bool higher = next > state.offset[h];
    correction[h] = higher ? ptx::ex2((state.offset[h] - next) * (far ? scale_log2 : 1.f)) : 1.f;
    state.offset[h] = next;
    state.sum[h] *= correction[h];
    if (!far && is_far(next) && next != minus_infinity()) state.sum[h] = not_a_number();
    rose |= higher;
  }
  return rose;
}

// All scores become p and join the sums, in rows that may have seen no key.
template <int Count>
__device__ __forceinline__ void exponentials_of_seen(float (&s)[Count], Softmax& state, float scale_log2, bool far) {
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    const float offset = state.offset[i / 2 % 2], base = offset == minus_infinity() ? 0.f : offset;
    s[i] = ptx::ex2(__fmaf_rn(s[i], far ? 1.f : scale_log2, -base) * (far ? scale_log2 : 1.f));
    state.sum[i / 2 % 2] += s[i];
  }
}

// Offsets of far rows, as the others have them. What overflows makes its row NaN.
__device__ __forceinline__ void scale_offsets(Softmax& state, float scale_log2) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    state.offset[h] *= scale_log2;
    state.sum[h] += state.offset[h] == minus_infinity() ? 0.f : state.offset[h] - state.offset[h];
  }
}
