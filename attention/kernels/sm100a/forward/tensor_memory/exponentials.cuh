// p = exp2(s * scale_log2 - offset) of a row, a share of it by a polynomial: MUFU gives 16 results a clock and SM, as
// many cycles for a tile as its products take at head dim 128 (FlashAttention-4 has the idea).
//
// 2^x = 2^n 2^f with n the nearest integer, f from -1/2 to 1/2. The polynomial, of degree 5 and minimax by relative
// error, errs by 8.1e-8, in float32 by 1.6e-7: no more than MUFU.EX2, so that the share moves time and no result.
// FlashAttention-4 stops at degree 3 and 9e-5, which p in 16 bits does not show; but lse does.
#pragma once
#include "online_softmax.cuh"
#include "ptx/convert.cuh"
#include "ptx/math_sm100.cuh"
#include "ptx/tcgen05.cuh"
#include "row_fragment.cuh"
#include "turns.cuh"

// Of each 32 exponentials kPolynomial are polynomials, in pairs that stand apart.
__device__ __forceinline__ constexpr bool is_polynomial(int i) {
  const int pair = i % 32 / 2, pairs = kPolynomial / 2;
  return (pair + 1) * pairs / 16 != pair * pairs / 16;
}

// Below -127 both are 0: the exponent field of 2^n is n + 127. NaN stays NaN: compared, not clamped by a maximum.
__device__ __forceinline__ float2 polynomial_ex2(float2 x) {
  constexpr float kToInteger = 12582912.f + 127.f;  // 1.5 * 2^23: what is added to it is rounded to an integer
  x = {x.x < -127.f ? -127.f : x.x, x.y < -127.f ? -127.f : x.y};
  const float2 n = ptx::fadd2(x, {kToInteger, kToInteger});
  const float2 f = ptx::ffma2(ptx::fadd2(n, {-kToInteger, -kToInteger}), {-1.f, -1.f}, x);
  constexpr float kCoefficients[] = {9.67196189e-3f, 5.55067845e-2f, 2.40222350e-1f, 6.93147063e-1f, 1.f};
  float2 p = {1.32746331e-3f, 1.32746331e-3f};
#pragma unroll
  for (const float c : kCoefficients) p = ptx::ffma2(p, f, {c, c});
  return ptx::fmul2(p, {__uint_as_float(__float_as_uint(n.x) << 23), __uint_as_float(__float_as_uint(n.y) << 23)});
}

// All scores become p, join the sum, and go to tensor memory as 16-bit pairs, 32 keys at a time.
template <bool Polynomial, int Count>
__device__ __forceinline__ void store_exponentials(const Row<Count>& s, Softmax<1>& state, float scale_log2,
                                                   unsigned to) {
  const float2 scale = {scale_log2, scale_log2}, offset = {-state.offset[0], -state.offset[0]};
  float2 sums[2] = {{state.sum[0], 0.f}, {0.f, 0.f}};
#pragma unroll
  for (int first = 0; first < Count; first += 32) {
    unsigned words[16];
#pragma unroll
    for (int pair = 0; pair < 16; ++pair) {
      const int i = first + 2 * pair;
      const float2 x = ptx::ffma2({s[i], s[i + 1]}, scale, offset);
      float2 p;
      if (Polynomial && is_polynomial(i))
        p = polynomial_ex2(x);
      else
        p = {ptx::ex2(x.x), ptx::ex2(x.y)};
      sums[pair % 2] = ptx::fadd2(sums[pair % 2], p);
      words[pair] = kBf16 ? ptx::pack_bf16(p.x, p.y) : ptx::pack_f16(p.x, p.y);
    }
    ptx::tcgen05_st_32x32b(to + first / 2, words);
  }
  const float2 sum = ptx::fadd2(sums[0], sums[1]);
  state.sum[0] = sum.x + sum.y;
}
