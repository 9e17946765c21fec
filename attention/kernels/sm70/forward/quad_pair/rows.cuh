// The softmax of a warp's tile of scores, and p on its way to be an operand.
#pragma once
#include "products.cuh"
#include "ptx/barrier.cuh"

struct Rows : Products {
  const Launch& launch;
  Softmax<2> state[kPanels];

  __device__ __forceinline__ explicit Rows(const Launch& launch) : launch(launch) {}

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int m = 0; m < kPanels; ++m) {
      zero(o[m]);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        state[m].most[h] = minus_infinity();
        state[m].offset[h] = state[m].sum[h] = 0.f;
      }
    }
  }

  // Scores of keys from `key` on, as the softmax takes them. One body of the loop serves all tiles: two would not fit
  // the instruction cache.
  __device__ __forceinline__ void adjust(const Work& work, int key, bool masked) {
    const int row = work.row + warp_row() + place.accumulator_row();
    const int column = key + part() * kScoreKeys + place.accumulator_key();
#pragma unroll
    for (int m = 0; m < kPanels; ++m) change(s[m], launch, work, row + m * 16, column);
    if (!masked) return;
#pragma unroll
    for (int m = 0; m < kPanels; ++m) hide_outside(s[m], work, row + m * 16, column);
  }

  // A number of each row, by the warps that share it: this warp's is told, and those of the others come back.
  __device__ __forceinline__ void exchange(const float (&mine)[kPanels][2], float (&others)[kPanels][2]) const {
    auto room = [&](int m, int h, int part) {
      return at.beside + 4 * ((part * kRowWarps + row_warp()) * kWarpRows + m * 16 + place.accumulator_row() + 8 * h);
    };
#pragma unroll
    for (int m = 0; m < kPanels; ++m)
#pragma unroll
      for (int h = 0; h < 2; ++h)
        if (place.accumulator_key() == 0) ptx::store_shared(room(m, h, part()), __float_as_uint(mine[m][h]));
    together();
#pragma unroll
    for (int m = 0; m < kPanels; ++m)
#pragma unroll
      for (int h = 0; h < 2; ++h) others[m][h] = __uint_as_float(ptx::load_shared(room(m, h, part() ^ 1)));
  }

  // The warps of these rows.
  __device__ __forceinline__ static void together() {
    if constexpr (kSplit == 1)
      __syncwarp();
    else
      ptx::barrier_sync(1 + row_warp(), 32 * kSplit);
  }

  // Scores become p against the largest score so far.
  __device__ __forceinline__ void soften() {
    if constexpr (kSplit > 1) {
      float mine[kPanels][2], others[kPanels][2];
#pragma unroll
      for (int m = 0; m < kPanels; ++m)
#pragma unroll
        for (int h = 0; h < 2; ++h) mine[m][h] = Scores::most(s[m].largest_here(h));
      exchange(mine, others);
#pragma unroll
      for (int m = 0; m < kPanels; ++m)
#pragma unroll
        for (int h = 0; h < 2; ++h) s[m].beside[h] = others[m][h];
    }
#pragma unroll
    for (int m = 0; m < kPanels; ++m) {
      float correction[2];
      const bool far = __any_sync(~0u, raise_maxima<false>(s[m], state[m], correction, launch.scale_log2));
      if (far) come_near(s[m], state[m]);
      exponentials(s[m], state[m], launch.scale_log2);
      rescale(o[m], correction);
      if (far) go_back(state[m], launch.scale_log2);
    }
  }

  // Sums of whole rows, over lanes and over warps.
  __device__ __forceinline__ void sum_up() {
    float mine[kPanels][2], others[kPanels][2];
#pragma unroll
    for (int m = 0; m < kPanels; ++m)
#pragma unroll
      for (int h = 0; h < 2; ++h) mine[m][h] = others[m][h] = Scores::sum(state[m].sum[h]);
    if (kSplit > 1) exchange(mine, others);
#pragma unroll
    for (int m = 0; m < kPanels; ++m)
#pragma unroll
      for (int h = 0; h < 2; ++h) state[m].sum[h] = kSplit > 1 ? mine[m][h] + others[m][h] : mine[m][h];
  }

  // As float16: in place, or where the lanes of this warp read it as an operand.
  __device__ __forceinline__ void pack() {
#pragma unroll
    for (int m = 0; m < kPanels; ++m) {
      const unsigned to = at.p + (row_warp() * kPanels + m) * kPPanel + place.accumulator_row() * kPPitch +
                          (part() * kScoreKeys + place.accumulator_key()) * 2;
#pragma unroll
      for (int i = 0; i < kScoreKeys / 4; ++i) {
        const unsigned pair = pack_pair(s[m][2 * i], s[m][2 * i + 1]);
        if (kPInRegisters)
          p[m][i] = pair;
        else
          ptx::store_shared(to + i % 2 * kPHalf + i / 2 * 16, pair);
      }
    }
    if (!kPInRegisters) together();
  }
};
