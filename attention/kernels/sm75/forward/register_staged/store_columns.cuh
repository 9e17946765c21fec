// Outputs from the accumulators of p V to global memory: no shared memory, no barrier, any stride.
//
// Of every 16 columns a quad holds four pairs of each of its two rows. Its lanes trade words, so that two of them have the
// upper row and two the lower one, eight neighbouring columns each: 16 bytes a store, whole sectors.
#pragma once
#include "products.cuh"

// `row` is the first of a panel's 16, within the sequence.
__device__ __forceinline__ void store_panel(const Launch& launch, const Work& work, int row, int lane,
                                            const RowPair<kHeadDim / 2>& o, const Softmax<2>& state) {
  using Outputs = RowPair<kHeadDim / 2>;
  const float sink = kLogit ? logit(launch, work) : 0.f;
  const int t = lane % 4, lower = t / 2;
  float inverse[2], lse[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const Finish finished = finish(Outputs::sum(state.sum[h]), state.offset[h], sink);
    inverse[h] = finished.inverse;
    lse[h] = finished.lse;
  }
  const int mine = row + lane / 4 + 8 * lower;
  const bool inside = mine < work.queries;
  const unsigned long long out = row_address(launch, work, mine);
#pragma unroll
  for (int block = 0; block < kDepth; ++block) {
    unsigned words[4];
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int i = 8 * block + 4 * half + 2 * h;
        words[2 * h + half] = pack_pair(o[i] * inverse[h], o[i + 1] * inverse[h]);
      }
    transpose_quad(words, t);
    const int column = 16 * block + 8 * (t % 2);
    ptx::store4_if(inside && column < launch.head_dim, out + 2 * column, {words[0], words[1], words[2], words[3]});
  }
  ptx::store_if(inside && t % 2 == 0, reinterpret_cast<ptx::u64>(lse_of(launch, work, mine)),
                __float_as_uint(lower ? lse[1] : lse[0]));
  if constexpr (kRanges) store_unused(launch, work, row + lane / 4, lane);
}
