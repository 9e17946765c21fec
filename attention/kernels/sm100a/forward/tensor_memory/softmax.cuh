// A softmax warpgroup: 128 query rows, one a thread. Scores come from tensor memory, and P goes back over them.
//
// A maximum that has grown by no more than 2^8 stays what it is (online_softmax.cuh): then outputs need no correction,
// and since p, sum and outputs are all on the old scale, the last division leaves nothing of it.
#pragma once
#include "block_pair.cuh"
#include "exponentials.cuh"
#include "features.cuh"

struct RowSoftmax {
  const Launch& launch;
  const Rooms& at;
  const int query_tile, thread;  // of the warpgroup
  const unsigned memory;         // of this warp's lanes
  Turn turn;
  Ring<1> sums{};
  Softmax<1> state{};

  __device__ __forceinline__ void load_scores(Row<kKeys>& s) const {
    ptx::mbarrier_wait(at.s_full + 8 * turn.stage(), turn.parity());
    ptx::tcgen05_fence_after();
    // ptxas 12.9 crashes over 128 registers at once.
    unsigned words[kKeys / 32][32];
#pragma unroll
    for (int part = 0; part < kKeys / 32; ++part)
      ptx::tcgen05_ld_32x32b(words[part], memory + turn.stage() * kScoreColumns + 32 * part);
    ptx::tcgen05_wait_ld();
#pragma unroll
    for (int i = 0; i < kKeys; ++i) s[i] = __uint_as_float(words[i / 32][i % 32]);
  }

  // Whether a row of this warp does not see all keys of a tile.
  __device__ __forceinline__ bool at_edge(const Work& work, int warp_row, int tile) const {
    const int first = tile * kKeys, end = first + kKeys;
    return end > work.keys || (kCausal && end > warp_row + work.right + 1) ||
           (kWindow && first < warp_row + 31 + work.left);
  }

  __device__ __forceinline__ void step(const Work& work, int row, int tile) {
    Row<kKeys> s;
    load_scores(s);
    change(s, launch, work, row, tile * kKeys);
    if (at_edge(work, row - thread % 32, tile)) hide_outside(s, work, row, tile * kKeys);
    float factor[1] = {1.f};
    bool far = false;
    if (__any_sync(~0u, exceeds(s, state, launch.slack))) {
      far = __any_sync(~0u, raise_maxima<false>(s, state, factor, launch.scale_log2));
      if (far) come_near(s, state);
    }
    ptx::store_shared(at.factor + (turn.stage() * kRows + thread) * 4, __float_as_uint(factor[0]));
    arrive_together(at.factor_full + 8 * turn.stage());
    const unsigned to = memory + turn.stage() * kScoreColumns;
    // An infinite score is far, and its NaN must not be lost.
    if (kPolynomial && !far) {
      store_exponentials<true>(s, state, launch.scale_log2, to);
    } else {
      store_exponentials<false>(s, state, launch.scale_log2, to);
      if (far) go_back(state, launch.scale_log2);
    }
    ptx::tcgen05_wait_st();
    ptx::tcgen05_fence_before();
    arrive_at_issuer(at.ready + 8 * turn.stage());
    turn.count += kQueryTiles;
  }

  __device__ __forceinline__ void run(const Work& work) {
    state = {{minus_infinity()}, {0.f}, {0.f}};
    const int row = work.row + query_tile * kRows + thread;
    for (int tile = work.last - 1; tile >= work.first; --tile) step(work, row, tile);
    ptx::mbarrier_wait(at.sum_empty + 8 * query_tile, sums.parity() ^ 1);
    sums.advance();
    ptx::store_shared(at.sum + (query_tile * kRows + thread) * 4, __float_as_uint(state.sum[0]));
    ptx::store_shared(at.offset + (query_tile * kRows + thread) * 4, __float_as_uint(state.offset[0]));
    arrive_together(at.sum_full + 8 * query_tile);
  }
};

__device__ __forceinline__ void soften(const Launch& launch, const Rooms& at, unsigned memory) {
  const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / 32, 0), query_tile = warp / 4;
  RowSoftmax self{launch,
                  at,
                  query_tile,
                  static_cast<int>(threadIdx.x) % kRows,
                  memory + (warp % 4 * 32 << 16),
                  {static_cast<unsigned>(query_tile)}};
  Slot slot;
  while (true) {
    const ptx::vec4 tile_at = receive(at, slot, threadIdx.x % 32);
    if (tile_at.x == kNoTile) break;
    const Work work = own_work(launch, tile_at);
    if (!work.sees_nothing()) self.run(work);
  }
}
