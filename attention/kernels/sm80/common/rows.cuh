// The softmax of a warp's slice of scores.
//
// Most slices need no maximum. p is taken against the largest score of the first keys, and as long as its sum over a
// slice stays small, that serves as well as the true maximum: the last division takes it out again. Where it does not,
// p, sums and outputs are divided by a power of two. Masked slices take the true maximum.
#pragma once
#include "products.cuh"
#include "store.cuh"
#include "strided.cuh"

struct Rows : Products {
  static constexpr float kRoom = 1024.f;  // for a thread's sum of p in a slice: f16 holds each p below it

  const Launch& launch;

  __device__ __forceinline__ explicit Rows(const Launch& launch) : launch(launch) {}

  // Scores of keys from `key` on, as the softmax takes them.
  template <bool Masked>
  __device__ __forceinline__ void adjust(const Work& work, int key) {
#pragma unroll
    for (int m = 0; m < kPanels; ++m) {
      const int mine = work.row + warp_row() + m * 16 + lane() / 4, column = key + lane() % 4 * 2;
      change(s[m], launch, work, mine, column);
      if constexpr (Masked) hide_outside(s[m], work, mine, column);
    }
  }

  __device__ __forceinline__ void pack() {
#pragma unroll
    for (int m = 0; m < kPanels; ++m)
#pragma unroll
      for (int i = 0; i < kSlice / 4; ++i) p[m][i / 4][i % 4] = pack_pair(s[m][2 * i], s[m][2 * i + 1]);
  }

  // Softmax of a slice against its true maximum.
  __device__ __forceinline__ void raise(bool far) {
#pragma unroll
    for (int m = 0; m < kPanels; ++m) {
      float correction[2];
      if (__any_sync(~0u, raise_offsets(s[m], state[m], correction, launch.scale_log2, far))) rescale(o[m], correction);
      exponentials_of_seen(s[m], state[m], launch.scale_log2, far);
    }
    pack();
  }

  // Scores [begin, end) of the slice become p, and join their rows' sums over the slice.
  __device__ __forceinline__ void exponentials_between(int begin, int end, float (&sums)[kPanels][2]) {
#pragma unroll
    for (int i = 0; i < kPanels * kSlice / 2; ++i) {
      if (i < begin || i >= end) continue;
      const int m = i / (kSlice / 2), at = i % (kSlice / 2), h = at / 2 % 2;
      float& x = s[m][at];
      x = ptx::ex2(__fmaf_rn(x, launch.scale_log2, -state[m].offset[h]));
      sums[m][h] = at < 4 && at % 2 == 0 ? x : sums[m][h] + x;
    }
  }

  // Divide p, its sums and the outputs of rows whose p grew large by the power of two that makes it small again.
  __device__ __forceinline__ void make_room(float (&sums)[kPanels][2]) {
#pragma unroll
    for (int m = 0; m < kPanels; ++m) {
      float factor[2];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int exponent = min(126, max(0, (__float_as_int(RowPair<kSlice / 2>::most(sums[m][h])) >> 23) - 127));
        factor[h] = __int_as_float((127 - exponent) << 23);
        state[m].offset[h] += static_cast<float>(exponent);
        state[m].sum[h] *= factor[h];
        sums[m][h] *= factor[h];
      }
      rescale(s[m], factor);
      rescale(o[m], factor);
    }
  }

  // After all scores of a slice have become p.
  __device__ __forceinline__ void join(float (&sums)[kPanels][2]) {
    float all = 0.f;
#pragma unroll
    for (int m = 0; m < kPanels; ++m) all += sums[m][0] + sums[m][1];
    if (__any_sync(~0u, !(all <= kRoom))) make_room(sums);
#pragma unroll
    for (int m = 0; m < kPanels; ++m)
#pragma unroll
      for (int h = 0; h < 2; ++h) state[m].sum[h] += sums[m][h];
    pack();
  }

  // Whether no sum has overflown.
  __device__ __forceinline__ bool finite() const {
    bool all = true;
#pragma unroll
    for (int m = 0; m < kPanels; ++m) all &= state[m].sum[0] + state[m].sum[1] < __uint_as_float(0x7f800000u);
    return all;
  }

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int m = 0; m < kPanels; ++m) {
      zero(o[m]);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        state[m].offset[h] = minus_infinity();
        state[m].sum[h] = 0.f;
      }
    }
  }

  __device__ __forceinline__ void store(const Work& work) const {
#pragma unroll
    for (int m = 0; m < kPanels; ++m)
      store_rows(launch, work, work.row + warp_row() + m * 16 + lane() / 4, lane(), o[m], state[m]);
  }
};
