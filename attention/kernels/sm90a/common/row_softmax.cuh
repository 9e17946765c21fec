// Scores of a consumer warpgroup become p: as a guess, by the largest scores of the tiles before, or weighed by the
// largest with them.
#pragma once
#include "mask_rows.cuh"
#include "products.cuh"
#include "ptx/elect.cuh"
#include "scale_queries.cuh"
#include "shared_keys.cuh"

struct RowSoftmax : Products {
  const Launch& launch;
  Softmax<2> state{};
  MaskRows<Scores> mask;

  // This thread's first score of a tile.
  struct Place {
    int row, column;

    __device__ __forceinline__ Place(int first, int tile)
        : row(first + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4), column(tile * kKeys + threadIdx.x % 4 * 2) {}
  };

  __device__ __forceinline__ void release(unsigned bar) const {
    if (ptx::elect_one()) ptx::mbarrier_arrive(bar);
  }

  // A stage of K or V, to whoever fetches into it.
  __device__ __forceinline__ void give_back(unsigned bar) const {
    if (!ptx::elect_one()) return;
    ptx::mbarrier_arrive(bar);
    tell_other(bar);
  }

  // The same, and a word of the arrival: 0 where this lane does not arrive.
  __device__ __forceinline__ unsigned give_back_first(unsigned bar) const {
    const bool elected = ptx::elect_one();
    if (elected) tell_other(bar);
    return ptx::mbarrier_arrive_if(elected, bar);
  }

  // K is multiplied; a word of the arrival that gives it back, or 0.
  __device__ __forceinline__ unsigned end_keys(unsigned bar) const {
    if constexpr (kKeysFirst) return give_back_first(bar);
    give_back(bar);
    return 0;
  }

  // Of scores as products leave them.
  __device__ __forceinline__ float scale_log2() const { return kScaledQ ? kLog2E : launch.scale_log2; }

  // 0, which ptxas does not know: what it is joined to waits for `word`. (2^24 heads would move an offset's last bits.)
  __device__ __forceinline__ unsigned nothing_of(unsigned word) const {
    return word & static_cast<unsigned>(launch.heads) >> 24;
  }

  // p of a tile by the largest scores so far; whether these serve all rows of the warp.
  //
  // A thread's part of a row's sum says so: no p of its is beyond it. The scores stay as they are for those
  // that it does not serve, which costs as many exponentials again, but a tile without a larger score, as nearly all
  // are, is not searched for its largest: 34 of 349 instructions at 128 keys, and what waits for them.
  //
  // With kReleasesFirst the second half waits for `released`, the word of the arrival that gives V back, and with
  // kKeysFirst all but the first eighth for `keys`, that of K's. Where nothing does, ptxas gives them back behind all
  // exponentials in some builds, which take longer than their twins: 3 to 6 % where it is V, and up to 20 where it is K
  // (early_releases.csv, early_keys.csv).
  __device__ __forceinline__ bool guess(unsigned keys, unsigned released) {
    const float scale = scale_log2();
    float added[2] = {0.f, 0.f}, offset[2];
    bool served = true;
#pragma unroll
    for (int h = 0; h < 2; ++h) offset[h] = guessed_offset(state, h, scale);
#pragma unroll
    for (int i = 0; i < kKeys / 4; ++i) {
      if (kKeysFirst && i == kKeys / 32)
#pragma unroll
        for (float& each : offset) each = __uint_as_float(__float_as_uint(each) | nothing_of(keys));
      if (kReleasesFirst && i == kKeys / 8)
#pragma unroll
        for (float& each : offset) each = __uint_as_float(__float_as_uint(each) | nothing_of(released));
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

  // p * V of the tile before is in the outputs; a word of the arrival that gives V back, or 0.
  __device__ __forceinline__ unsigned end_values() {
    unsigned released = 0;
    if constexpr (kOverlap) {
      ptx::wgmma_wait<0>();
      const unsigned bar = at.v_empty + 8 * v.stage();
      if constexpr (kReleasesFirst)
        released = give_back_first(bar);
      else
        give_back(bar);
    }
    v.advance();
    return released;
  }

  // By scores or by their largest.
  template <bool First, class Found>
  __device__ __forceinline__ bool raise_by(const Found& found, float (&correction)[2]) {
    constexpr bool kEveryTile = kHiding || !kLazy;
    return raise_maxima<First, kEveryTile>(found, state, correction, scale_log2(), least_seen_score());
  }

  // Scores become p by the largest with them, which serves the tiles that follow; what outputs are multiplied by.
  template <bool First>
  __device__ __forceinline__ void weigh(const Work& work, int row, int tile, float (&correction)[2]) {
    const Place place(row, tile);
    bool beyond;
    if constexpr (kHideAgain)
      beyond = raise_by<First>(mask.template hide_again<First>(s, launch, work, place.row, place.column), correction);
    else
      beyond = raise_by<First>(s, correction);
    const bool far = __any_sync(~0u, beyond);
    forget_unseen(state, scale_log2());
    if (far) come_near(s, state);
    exponentials(s, state, scale_log2());
    if (far) go_back(state, scale_log2());
  }

  // p of a tile that no guess serves, and outputs and sums as they count beside it.
  template <bool Guessed>
  __device__ __forceinline__ void raise(const Work& work, int row, int tile) {
    float correction[2];
    weigh<false>(work, row, tile, correction);
    if constexpr (!Guessed) end_values();
    rescale(o, correction);
    pack();
  }

  // Scores of keys from `tile` on, as the softmax takes them.
  template <bool Masked>
  __device__ __forceinline__ void adjust(const Work& work, int row, int tile) {
    const Place place(row, tile);
    mask.change(s, launch, work, at, place.row, place.column);
    if constexpr (Masked) hide_outside(s, work, place.row, place.column);
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
};
