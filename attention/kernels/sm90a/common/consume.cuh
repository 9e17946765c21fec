// A consumer warpgroup: 64 query rows, whose scores and outputs live in its registers.
//
// With OVERLAP a step issues the scores of tile n and then p * V of tile n + 1 (keys run downwards), and the softmax of
// n runs on the other units while that second product is still under way. With PINGPONG warpgroups issue in turn, so
// that one's softmax runs under the other's products.
#pragma once
#include "packed_rows.cuh"
#include "produce.cuh"
#include "ptx/barrier.cuh"
#include "ptx/wgmma.cuh"
#include "row_softmax.cuh"
#include "seen.cuh"
#include "store.cuh"

struct Consumer : RowSoftmax {
  Ring<1> q{};

  // Here the warp is together. An aligned instruction says so to ptxas; behind a loop that some lanes might leave
  // early, it keeps counters and descriptors out of uniform registers, and puts a chain of adds and R2UR before each
  // product (on an H100 up to 15 % of the time).
  __device__ __forceinline__ void together() const { ptx::wgmma_fence(); }

  __device__ __forceinline__ void await_turn() const {
    if (kPingpong) ptx::barrier_sync(1 + group, 256);
  }

  __device__ __forceinline__ void pass_turn() const {
    if (kPingpong) ptx::barrier_arrive(1 + (group + 1) % kWarpgroups, 256);
  }

  // Q as products take it.
  __device__ __forceinline__ void prepare_queries() const {
    if constexpr (kScaledQ) {
      scale_rows(at.q + group * kQBytes, kQBytes, power_of_two(launch.scale_log2 / kLog2E));
      ptx::fence_proxy_async();
      ptx::barrier_sync(1 + kWarpgroups + group, 128);
    }
  }

  // A tile of keys that none of these rows sees: the producer and the other warpgroups count on every consumer.
  __device__ __forceinline__ void skip() {
    together();
    ptx::mbarrier_wait(at.k_full + 8 * v.stage(), v.parity());
    give_back(at.k_empty + 8 * v.stage());
    await_turn();
    pass_turn();
    ptx::mbarrier_wait(at.v_full + 8 * v.stage(), v.parity());
    give_back(at.v_empty + 8 * v.stage());
    v.advance();
  }

  // Where heads share rows queries may be too few for this warpgroup, which then leaves the tensor cores to the others.
  __device__ __forceinline__ bool has_none(const Work& work) const {
    return !work.sees_nothing() && work.query_of(first_row(work)) >= work.queries;
  }

  __device__ __forceinline__ void pass_by(const Work& work) {
    ptx::mbarrier_wait(at.q_full + 8 * group, q.parity());
    q.advance();
#pragma unroll 1
    for (int tile = work.last; tile > work.first; --tile) skip();
    release(at.q_empty + 8 * group);
  }

  // Q and the first tile of keys that one of these rows sees are there, the latter in stage `k`.
  __device__ __forceinline__ void begin(const Work& work, int tile, Ring<kStages> k) {
    mask.begin(launch, work, at);
    fetch<false>(work, tile);
    ptx::mbarrier_wait(at.q_full + 8 * group, q.parity());
    q.advance();
    together();
    mask.seed(s, launch, at);
    prepare_queries();
    if constexpr (kQInRegisters) {
      hold_queries();
      // An arrival does not wait for loads: behind the stores of the tile before they took so long that the next tile's
      // Q came in over rows that had not been read (H200, one key, 37 of 40 runs).
      ptx::fence_proxy_async();
      __syncwarp();
      release(at.q_empty + 8 * group);
    }
    ptx::mbarrier_wait(at.k_full + 8 * k.stage(), k.parity());
  }

  // That tile, with no other products under way.
  __device__ __forceinline__ int first(const Work& work, int row) {
    int tile = work.last - 1;
    if constexpr (kCausal) {
      const int mine = at_diagonal(work, row);
      for (; tile > max(mine, work.first); --tile) skip();
    }
    begin(work, tile, v);
    await_turn();
    multiply_scores(v);
    pass_turn();
    mask.hold(at);
    ptx::wgmma_wait<0>();
    give_back(at.k_empty + 8 * v.stage());
    float correction[2];
    adjust<true>(work, row, tile);
    weigh<true>(work, row, tile, correction);
    pack();
    return tile;
  }

  // That tile beside p * V of the last one of the rows before, which are stored.
  __device__ __forceinline__ int cross(const Work& work, int row, const Work& before, int row_before, bool accumulate) {
    const Ring<kStages> k{v.count + 1};
    const int tile = work.last - 1;
    begin(work, tile, k);
    await_turn();
    multiply_scores(k);
    ptx::mbarrier_wait(at.v_full + 8 * v.stage(), v.parity());
    multiply_values(accumulate);
    pass_turn();
    mask.hold(at);
    ptx::wgmma_wait<1>();
    give_back(at.k_empty + 8 * k.stage());
    const Softmax<2> whole = state;
    float correction[2];
    adjust<true>(work, row, tile);
    weigh<true>(work, row, tile, correction);
    end_values();
    store(before, row_before, whole);
    pack();
    return tile;
  }

  // One tile of keys after the first: its scores, and p * V of the tile before it.
  template <bool Masked>
  __device__ __forceinline__ void step(const Work& work, int row, int tile, int least, bool accumulate) {
    const Ring<kStages> k{v.count + 1};
    mask.seed(s, launch, at);
    if constexpr (kOverlap) {
      ptx::mbarrier_wait(at.k_full + 8 * k.stage(), k.parity());
      await_turn();
      multiply_scores(k);
      ptx::mbarrier_wait(at.v_full + 8 * v.stage(), v.parity());
      multiply_values(accumulate);
      pass_turn();
      hold_mask(work, tile, least);
      ptx::wgmma_wait<1>();
    } else {
      ptx::mbarrier_wait(at.v_full + 8 * v.stage(), v.parity());
      await_turn();
      multiply_values(accumulate);
      ptx::mbarrier_wait(at.k_full + 8 * k.stage(), k.parity());
      multiply_scores(k);
      pass_turn();
      hold_mask(work, tile, least);
      ptx::wgmma_wait<0>();
      give_back(at.v_empty + 8 * v.stage());
    }
    const unsigned keys = end_keys(at.k_empty + 8 * k.stage());
    adjust<Masked>(work, row, tile);
    if (!kMaskHeld && tile > least) fetch<true>(work, tile - 1);
    if constexpr (kGuesses && !Masked) {
      if (!guess(keys, end_values())) raise<true>(work, row, tile);
    } else {
      raise<false>(work, row, tile);
    }
  }

  // All tiles of keys of a tile of rows but the first, `tile`, and p * V of the last; whether there were any.
  __device__ __forceinline__ bool run(const Work& work, int row, int tile) {
    const int least = least_seen(work, row, tile);
    bool accumulate = false;
    if (tile > least) fetch<true>(work, tile - 1);
    --tile;
    if constexpr (kCausal) {
      const int whole = seen_whole(work, row);
      for (; tile >= max(least, whole); --tile, accumulate = true) step<true>(work, row, tile, least, accumulate);
    }
    const int seen = kWindow ? max(least, seen_by_all(work, row)) : least;
    for (; tile >= seen; --tile, accumulate = true) step<false>(work, row, tile, least, accumulate);
    if constexpr (kWindow)
      for (; tile >= least; --tile, accumulate = true) step<true>(work, row, tile, least, accumulate);

    if (!kQInRegisters) release(at.q_empty + 8 * group);
    return accumulate;
  }

  // p * V of the last tile, and all that is left of these rows.
  __device__ __forceinline__ void last(const Work& work, int row, bool accumulate) {
    ptx::mbarrier_wait(at.v_full + 8 * v.stage(), v.parity());
    multiply_values(accumulate);
    ptx::wgmma_wait<0>();
    give_back(at.v_empty + 8 * v.stage());
    v.advance();
    if constexpr (kWindow)
      for (int tile = least_seen(work, row, first_seen(work, row)); tile > work.first; --tile) skip();
  }

  __device__ __forceinline__ void store(const Work& work, int row, const Softmax<2>& whole) const {
    if constexpr (kPackGqa)
      store_fragment(launch, work, Place(row, 0).row, threadIdx.x % 32, o, whole);
    else
      store_rows(launch, work, Place(row, 0).row, threadIdx.x % 32, o, whole);
    if constexpr (kPackGqa && kRanges) store_none(launch, work, Place(row, 0).row, threadIdx.x % 32, false);
  }

  __device__ __forceinline__ int first_row(const Work& work) const { return work.row + group * kGroupRows; }

  __device__ __forceinline__ void store_unseen(const Work& work) const {
    if constexpr (kPackGqa)
      store_none(launch, work, Place(first_row(work), 0).row, threadIdx.x % 32, true);
    else
      store_nothing(launch, work, Place(first_row(work), 0).row, threadIdx.x % 32);
  }

  __device__ __forceinline__ ptx::vec4 next(Slot& slot) const { return receive(at, slot, threadIdx.x % 32); }
};
