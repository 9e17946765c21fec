// The softmax of a warp's tile of scores.
#pragma once
#include "products.cuh"

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
    const int row = work.row + warp_row() + lane() / 4, column = key + lane() % 4 * 2;
#pragma unroll
    for (int m = 0; m < kPanels; ++m) change(s[m], launch, work, row + m * 16, column);
    if (!masked) return;
#pragma unroll
    for (int m = 0; m < kPanels; ++m) hide_outside(s[m], work, row + m * 16, column);
  }

  // Scores become p against the largest score so far.
  __device__ __forceinline__ void soften() {
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

  // As float16, each where it is an operand.
  __device__ __forceinline__ void pack() {
#pragma unroll
    for (int m = 0; m < kPanels; ++m)
#pragma unroll
      for (int i = 0; i < kKeys / 4; ++i) p[m][i / 4][i % 4] = pack_pair(s[m][2 * i], s[m][2 * i + 1]);
  }
};
