// Outputs from the accumulators of p V to global memory: no shared memory, no barrier, any stride.
//
// A lane has two rows and every other pair of columns. It trades one row for the other pairs of the other row with the
// lane that differs in bit 1, and then has 8 neighbouring columns, twice in every 32: 16 bytes a store, whole sectors.
#pragma once
#include "products.cuh"

// Eight columns of this lane's row, of the accumulators o[first] and o[second] on.
__device__ __forceinline__ ptx::vec4 columns_of(const QuadPair<kColumns / 2>& o, int first, int second,
                                                const float (&inverse)[2]) {
  Row4 four[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int from = i ? second : first;
    four[i] = row_of(pack_pair(o[from] * inverse[0], o[from + 1] * inverse[0]),
                     pack_pair(o[from + 2] * inverse[1], o[from + 3] * inverse[1]));
  }
  return {four[0].word[0], four[0].word[1], four[1].word[0], four[1].word[1]};
}

// `row` is the first of a panel's 16, within the sequence. Sums are those of whole rows.
__device__ __forceinline__ void store_panel(const Launch& launch, const Work& work, int row, const Place& place,
                                            const QuadPair<kColumns / 2>& o, const Softmax<2>& state) {
  const float sink = kLogit ? logit(launch, work) : 0.f;
  float inverse[2], lse[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const Finish finished = finish(state.sum[h], state.offset[h], sink);
    inverse[h] = finished.inverse;
    lse[h] = finished.lse;
  }
  const int mine = row + place.operand_row();
  const bool inside = mine < work.queries;
  const unsigned long long out = row_address(launch, work, mine);
  auto store = [&](int column, const ptx::vec4& words) {
    ptx::store4_if(inside && column < launch.head_dim, out + 2 * column, words);
  };
#pragma unroll
  for (int pair = 0; pair < Products::kPairs; ++pair) {
    const int column = Products::part() * kColumns + 32 * pair + 8 * place.column_pair(), from = 16 * pair;
    if (!Products::whole(pair)) {
      store(column, columns_of(o, from, from + 4, inverse));
      continue;
    }
    store(column, columns_of(o, from, from + 8, inverse));
    store(column + 16, columns_of(o, from + 4, from + 12, inverse));
  }
  ptx::store_if(inside && !place.column_pair() && Products::part() == 0,
                reinterpret_cast<ptx::u64>(lse_of(launch, work, mine)),
                __float_as_uint(place.lower_half() ? lse[1] : lse[0]));
  if constexpr (kRanges)
    if (Products::part() == 0) store_unused(launch, work, row + place.lane / 4, place.lane);
}
