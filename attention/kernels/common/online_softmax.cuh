// Online softmax over a fragment of scores (fragment.cuh).
//
// Scores stay as the products left them; the softmax scale enters with log2(e) in one FFMA before each exp2, of which the
// offset is most * scale_log2, rounded. What rounding took away stays in every exponent: below 1 for offsets below
// kFar, but 2^13 at 2^37, where exp2 of it is inf or 0. A row beyond is far, and its exponents are
// (s - most) * scale_log2, two instructions. What overflows float32 before or after the scale is inf as in torch's
// float32: a score of +inf makes its row NaN, and one of -inf hides its key.
#pragma once
#include "fragment.cuh"
#include "ptx/math.cuh"

__device__ __forceinline__ float minus_infinity() { return __uint_as_float(0xff800000u); }

__device__ __forceinline__ float not_a_number() { return __uint_as_float(0x7fffffffu); }

constexpr float kFar = 33554432.f;  // 2^25

__device__ __forceinline__ bool is_far(float offset) { return fabsf(offset) >= kFar; }

// Per row: a score that none so far exceeds by much, what exp2 subtracts for it, and this thread's part of the sum of
// p = exp2(s * scale_log2 - offset).
template <int Rows>
struct Softmax {
  float most[Rows], offset[Rows], sum[Rows];
};

// Bring the largest scores up to date; whether a row of this thread is far. `correction` is what the outputs so far must
// be multiplied by; the first tile has none. A row that has no key yet, or none that counts, has the offset 0.
//
// The difference of two maxima makes it 1 to the last bit where the maximum stays, and roundings of offsets do not add
// up: all but the last one's and p's own cancel. The minimum is 0 where both are -inf. One FFMA of the old maximum has
// the new offset's rounding, up to 2^-20 from 16 on, in every correction: 264 tiles took lse beyond its tolerance (H200).
// `EveryTile` is 0 where a correction is rare enough for it. Scores below `least` are of no key.
template <bool First, bool EveryTile = true, class Scores>
__device__ __forceinline__ bool raise_maxima(const Scores& s, Softmax<Scores::kRows>& state,
                                             float (&correction)[Scores::kRows], float scale_log2,
                                             float least = minus_infinity()) {
  bool far = false;
#pragma unroll
  for (int h = 0; h < Scores::kRows; ++h) {
    float most = s.largest(h);
    most = Scores::most(First ? most : fmaxf(most, state.most[h]));
    if (most < least) most = minus_infinity();
    const float scaled = most * scale_log2;
    state.offset[h] = scaled == minus_infinity() ? 0.f : scaled;
    const bool beyond = is_far(state.offset[h]);
    if (!First) {
      const float before = state.most[h] - (EveryTile || beyond ? most : 0.f);
      correction[h] = ptx::ex2(EveryTile ? fminf(before * scale_log2, 0.f)
                                         : __fmaf_rn(before, scale_log2, beyond ? 0.f : -state.offset[h]));
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
template <class Scores>
__device__ __forceinline__ bool exceeds(const Scores& s, const Softmax<Scores::kRows>& state, float slack) {
  bool any = false;
#pragma unroll
  for (int h = 0; h < Scores::kRows; ++h) {
    const int peak = s.largest_bits(h);
    const float limit = __fmaf_rn(state.most[h], 1.f - 0x1p-18f, slack);
    any |= !(limit > 0.f) || peak > __float_as_int(limit);
  }
  return any;
}

// All scores become p, and join the sums.
template <class Scores>
__device__ __forceinline__ void exponentials(Scores& s, Softmax<Scores::kRows>& state, float scale_log2) {
#pragma unroll
  for (int i = 0; i < Scores::kCount; ++i) {
    s[i] = ptx::ex2(__fmaf_rn(s[i], scale_log2, -state.offset[Scores::line(i)]));
    state.sum[Scores::line(i)] += s[i];
  }
}

// Scores of far rows are counted from their largest while they become p, and what overflows with the scale is NaN.
template <class Scores>
__device__ __forceinline__ void come_near(Scores& s, Softmax<Scores::kRows>& state) {
#pragma unroll
  for (int h = 0; h < Scores::kRows; ++h) {
    if (!is_far(state.offset[h])) continue;
    state.offset[h] -= state.offset[h];
#pragma unroll
    for (int i = 0; i < Scores::kCount; ++i)
      if (Scores::line(i) == h) s[i] -= state.most[h];
  }
}

template <int Rows>
__device__ __forceinline__ void go_back(Softmax<Rows>& state, float scale_log2) {
#pragma unroll
  for (int h = 0; h < Rows; ++h) {
    const float scaled = state.most[h] * scale_log2;
    state.offset[h] = scaled == minus_infinity() ? 0.f : scaled;
  }
}

template <class Scores>
__device__ __forceinline__ void rescale(Scores& o, const float (&correction)[Scores::kRows]) {
#pragma unroll
  for (int i = 0; i < Scores::kCount; ++i) o[i] *= correction[Scores::line(i)];
}

// Raise offsets to the largest score of the tile where that is larger; whether any rose. An offset is -inf until its
// row has seen a key, so that p against it would be +inf. Of a far row the sum becomes NaN, by which it is run a second
// time: `far`, offsets are in units of scores.
template <class Scores>
__device__ __forceinline__ bool raise_offsets(const Scores& s, Softmax<Scores::kRows>& state,
                                              float (&correction)[Scores::kRows], float scale_log2, bool far) {
  bool rose = false;
#pragma unroll
  for (int h = 0; h < Scores::kRows; ++h) {
    float most = s.largest(h);
    most = Scores::most(most);
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
template <class Scores>
__device__ __forceinline__ void exponentials_of_seen(Scores& s, Softmax<Scores::kRows>& state, float scale_log2,
                                                     bool far) {
#pragma unroll
  for (int i = 0; i < Scores::kCount; ++i) {
    const float offset = state.offset[Scores::line(i)], base = offset == minus_infinity() ? 0.f : offset;
    s[i] = ptx::ex2(__fmaf_rn(s[i], far ? 1.f : scale_log2, -base) * (far ? scale_log2 : 1.f));
    state.sum[Scores::line(i)] += s[i];
  }
}

// Offsets of far rows, as the others have them. What overflows makes its row NaN.
template <int Rows>
__device__ __forceinline__ void scale_offsets(Softmax<Rows>& state, float scale_log2) {
#pragma unroll
  for (int h = 0; h < Rows; ++h) {
    state.offset[h] *= scale_log2;
    state.sum[h] += state.offset[h] == minus_infinity() ? 0.f : state.offset[h] - state.offset[h];
  }
}
