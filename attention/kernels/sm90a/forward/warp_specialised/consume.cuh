// A consumer warpgroup: 64 query rows, whose scores and outputs live in its registers.
//
// With OVERLAP a step issues the scores of tile n and then p * V of tile n + 1 (keys run downwards), and the softmax of
// n runs on the other units while that second product is still under way. With PINGPONG warpgroups issue in turn, so
// that one's softmax runs under the other's products.
#pragma once
#include "mask_rows.cuh"
#include "produce.cuh"
#include "products.cuh"
#include "ptx/barrier.cuh"
#include "ptx/elect.cuh"
#include "ptx/wgmma.cuh"
#include "scale_queries.cuh"
#include "seen.cuh"
#include "store.cuh"

struct Consumer : Products {
  const Launch& launch;
  Ring<1> q{};
  Softmax<2> state{};
  MaskRows<Scores> mask;

  __device__ __forceinline__ void release(unsigned bar) const {
    if (ptx::elect_one()) ptx::mbarrier_arrive(bar);
  }

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

  // Of scores as products leave them.
  __device__ __forceinline__ float scale_log2() const { return kScaledQ ? kLog2E : launch.scale_log2; }

  // Q as products take it.
  __device__ __forceinline__ void prepare_queries() const {
    if constexpr (kScaledQ) {
      scale_rows(at.q + group * kQBytes, kQBytes, power_of_two(launch.scale_log2 / kLog2E));
      ptx::fence_proxy_async();
      ptx::barrier_sync(1 + kWarpgroups + group, 128);
    }
  }

  // p of a tile by the largest scores so far; whether these serve all rows of the warp.
  //
  // A thread's part of a row's sum says so: no p of its is beyond it. The scores stay as they are for those
  // that it does not serve, which costs as many exponentials again, but a tile without a larger score, as nearly all
  // are, is not searched for its largest: 34 of 349 instructions at 128 keys, and what waits for them.
  __device__ __forceinline__ bool guess() {
    const float scale = scale_log2();
    float added[2] = {0.f, 0.f}, offset[2];
    bool served = true;
#pragma unroll
    for (int h = 0; h < 2; ++h) offset[h] = guessed_offset(state, h, scale);
#pragma unroll
    for (int i = 0; i < kKeys / 4; ++i) {
      const int h = Scores::line(2 * i);
      const float one = ptx::ex2(__fmaf_rn(s[2 * i], scale, -offset[h]));
      const float other = ptx::ex2(__fmaf_rn(s[2 * i + 1], scale, -offset[h]));
      added[h] += one;
      added[h] += other;
      pack(i, one, other);
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) served &= added[h] <= kMostOfTile && !is_far(state.offset[h]);
    if (!__all_sync(~0u, served)) return false;
#pragma unroll
    for (int h = 0; h < 2; ++h) state.sum[h] += added[h];
    return true;
  }

  // p * V of the tile before is in the outputs.
  __device__ __forceinline__ void end_values() {
    if constexpr (kOverlap) {
      ptx::wgmma_wait<0>();
      release(at.v_empty + 8 * v.stage());
    }
    v.advance();
  }

  // p of a tile by the largest scores with it, to which outputs and sums are brought.
  template <bool Guessed>
  __device__ __forceinline__ void raise() {
    constexpr bool kEveryTile = kHiding || !kLazy;
    float correction[2];
    mask.hide_again(s, at);
    const bool far = __any_sync(~0u, raise_maxima<false, kEveryTile>(s, state, correction, scale_log2()));
    if (far) come_near(s, state);
    if constexpr (kHideAgain && !Guessed) mask.leave(at);
    exponentials(s, state, scale_log2());
    if constexpr (!Guessed) end_values();
    rescale(o, correction);
    if (far) go_back(state, scale_log2());
    pack();
  }

  // Scores of keys from `tile` on, as the softmax takes them.
  template <bool Masked>
  __device__ __forceinline__ void adjust(const Work& work, int row, int tile) {
    const int lane = threadIdx.x % 32, mine = row + threadIdx.x / 32 % 4 * 16 + lane / 4,
              column = tile * kKeys + lane % 4 * 2;
    mask.change(s, launch, work, at, mine, column);
    if constexpr (Masked) hide_outside(s, work, mine, column);
  }

  // On its way while the scores of the tile before become p; not `Whole`, keys may end within the tile.
  template <bool Whole>
  __device__ __forceinline__ void fetch(const Work& work, int tile) {
    mask.template fetch<Whole>(launch, work, at, tile * kKeys);
  }

  // While scores are multiplied.
  __device__ __forceinline__ void hold_mask(const Work& work, int tile, int least) {
    mask.hold(at);
    if (kMaskHeld && tile > least) fetch<true>(work, tile - 1);
  }

  // A tile of keys that none of these rows sees: the producer and the other warpgroups count on every consumer.
  __device__ __forceinline__ void skip() {
    together();
    ptx::mbarrier_wait(at.k_full + 8 * v.stage(), v.parity());
    release(at.k_empty + 8 * v.stage());
    await_turn();
    pass_turn();
    ptx::mbarrier_wait(at.v_full + 8 * v.stage(), v.parity());
    release(at.v_empty + 8 * v.stage());
    v.advance();
  }

  // The first tile of keys that one of these rows sees.
  __device__ __forceinline__ int first(const Work& work, int row) {
    int tile = work.last - 1;
    if constexpr (kCausal) {
      const int mine = at_diagonal(work, row);
      for (; tile > max(mine, work.first); --tile) skip();
    }
    mask.begin(launch, work, at);
    fetch<false>(work, tile);
    float correction[2];
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
    ptx::mbarrier_wait(at.k_full + 8 * v.stage(), v.parity());
    await_turn();
    multiply_scores(v);
    pass_turn();
    mask.hold(at);
    ptx::wgmma_wait<0>();
    release(at.k_empty + 8 * v.stage());
    adjust<true>(work, row, tile);
    mask.hide_again(s, at);
    if constexpr (kHideAgain) mask.leave(at);
    const bool far = __any_sync(~0u, raise_maxima<true>(s, state, correction, scale_log2()));
    if (far) come_near(s, state);
    exponentials(s, state, scale_log2());
    if (far) go_back(state, scale_log2());
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
      release(at.v_empty + 8 * v.stage());
    }
    release(at.k_empty + 8 * k.stage());
    adjust<Masked>(work, row, tile);
    if (!kMaskHeld && tile > least) fetch<true>(work, tile - 1);
    if constexpr (kGuesses && !Masked) {
      end_values();
      if (!guess()) raise<true>();
      if constexpr (kHideAgain) mask.leave(at);
    } else {
      raise<false>();
    }
  }

  // All tiles of keys of a tile of rows.
  __device__ __forceinline__ void run(const Work& work) {
    const int row = work.row + group * kGroupRows;
    int tile = first(work, row);
    const int least = least_seen(work, row, tile);
    bool accumulate = false;
    if (tile > least) fetch<true>(work, tile - 1);
    --tile;
    if constexpr (kCausal) {
      const int whole = (row + work.right + 1) / kKeys;  // tiles below this one are seen in full by every row
      for (; tile >= max(least, whole); --tile, accumulate = true) step<true>(work, row, tile, least, accumulate);
    }
    const int seen = kWindow ? max(least, (row + kGroupRows - 1 + work.left + kKeys - 1) / kKeys) : least;
    for (; tile >= seen; --tile, accumulate = true) step<false>(work, row, tile, least, accumulate);
    if constexpr (kWindow)
      for (; tile >= least; --tile, accumulate = true) step<true>(work, row, tile, least, accumulate);

    if (!kQInRegisters) release(at.q_empty + 8 * group);
    ptx::mbarrier_wait(at.v_full + 8 * v.stage(), v.parity());
    multiply_values(accumulate);
    ptx::wgmma_wait<0>();
    release(at.v_empty + 8 * v.stage());
    v.advance();
    if constexpr (kWindow)
      for (; tile >= work.first; --tile) skip();
  }
};

__device__ __forceinline__ void consume(const Launch& launch, const Rooms& at) {
  // From one lane to all: ptxas keeps what follows from it in uniform registers.
  Consumer self{{at, __shfl_sync(~0u, static_cast<int>(threadIdx.x) / 128 - 1, 0)}, launch};
  if (kPingpong && self.group == kWarpgroups - 1) self.pass_turn();
  Slot slot;
  while (true) {
    const ptx::vec4 tile = receive(at, slot, threadIdx.x % 32);
    if (tile.x == kNoTile) break;
    const Work work = work_of(launch, tile);
    const int row = work.row + self.group * kGroupRows + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
    if (work.sees_nothing()) {
      store_nothing(launch, work, row, threadIdx.x % 32);
    } else {
      self.run(work);
      store_rows(launch, work, row, threadIdx.x % 32, self.o, self.state);
    }
  }
}
