// What else a score may go through before the softmax, on the accumulator fragment of online_softmax.cuh. Scores are
// raw products: the softmax scale follows in exp2.
#pragma once
#include "online_softmax.cuh"

// tanh by one exponential and one division. tanh.approx errs by 2^-11 (PTX ISA), which a cap of 50 would make 0.02 of a
// score. The division is div.approx, right to 2 ulp: a rounded one takes eight instructions and a branch for every
// score, and registers that a tile does not leave.
__device__ __forceinline__ float exact_tanh(float x) { return 1.f - __fdividef(2.f, 1.f + ptx::ex2(2.88539008f * x)); }

// Scores become tanh(s * slope): times the cap they are softcapped, which the scale of exp2 does.
template <int Count>
__device__ __forceinline__ void softcap(float (&s)[Count], float slope) {
#pragma unroll
  for (int i = 0; i < Count; ++i) s[i] = exact_tanh(s[i] * slope);
}

// ALiBi: subtract slope * |distance to the diagonal|. `ahead` is the diagonal's key of row g less the key of s[0].
template <int Count>
__device__ __forceinline__ void add_alibi(float (&s)[Count], float slope, int ahead) {
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    const int distance = ahead + i / 2 % 2 * 8 - (i / 4 * 8 + i % 2);
    s[i] -= slope * static_cast<float>(abs(distance));
  }
}

// A mask of bytes, 0 hides. `row` and `column` are those of s[0]; what lies outside of the tensor is not read.
struct MaskRows {
  const unsigned char* bytes;
  long long row_stride, key_stride;
  int rows, keys;
};

template <int Count>
__device__ __forceinline__ void hide_masked(float (&s)[Count], const MaskRows& mask, int row, int column) {
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    const int at_row = row + i / 2 % 2 * 8, at_key = column + i / 4 * 8 + i % 2;
    if (at_row >= mask.rows || at_key >= mask.keys) continue;
    if (!mask.bytes[at_row * mask.row_stride + at_key * mask.key_stride]) s[i] = minus_infinity();
  }
}
