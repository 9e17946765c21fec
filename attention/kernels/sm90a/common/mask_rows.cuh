// A warp's rows of a mask in shared memory, a tile of keys at a time: by a box of TMA where kBoxes, else by its lanes.
//
// The warp asks for its next rows as soon as it has read the last: nobody waits for another warp. Two tiles of a mask on
// their way brought nothing (H200): it is the L2 that float32 masks wait for, 29 bytes a clock and SM of them, K and V.
// So two blocks share them where they may: shared_mask.cuh.
#pragma once
#include "clear.cuh"
#include "features.cuh"
#include "pairs.cuh"
#include "ptx/elect.cuh"
#include "ptx/math.cuh"
#include "ptx/mbarrier.cuh"
#include "schedule.cuh"

// Scores below it are of no key that counts. Under bools a hidden one may be finite, and lies far below: kUnseen and what
// products add.
__device__ __forceinline__ float least_seen_score() {
  return kHideAgain ? .75f * __uint_as_float(kUnseen) : minus_infinity();
}

// What overflows by the scale alone counts for none: a mask's float of -3e38 hides its key so.
__device__ __forceinline__ void forget_unseen(Softmax<2>& state, float scale_log2) {
#pragma unroll
  for (int h = 0; h < 2; ++h)
    if (state.most[h] * scale_log2 == minus_infinity()) state.most[h] = minus_infinity();
}

// What exp2 subtracts in a guess: of a row that has seen no key so little that the first one's p is +inf, where one that is
// hidden has 0. 5 % of such rows are in nearly all products of 64: a search for the largest in each was slower than to
// rescale at every tile.
__device__ __forceinline__ float guessed_offset(const Softmax<2>& state, int h, float scale_log2) {
  constexpr float kLeast = -3.40282347e38f;
  if (state.most[h] != minus_infinity()) return state.offset[h];
  return kHideAgain ? fmaxf(least_seen_score() * scale_log2, kLeast) : kLeast;
}

// A thread's largest score of each of its rows, of a tile that bools hide keys of: all that raise_maxima asks of scores.
//
// NaN are the largest, so that one search serves the question for doubt too.
template <class Scores>
struct Largest {
  static constexpr int kRows = Scores::kRows;
  float at[kRows];

  __device__ __forceinline__ explicit Largest(const Scores& s) {
#pragma unroll
    for (int h = 0; h < kRows; ++h) {
      at[h] = minus_infinity();
#pragma unroll
      for (int i = 0; i < Scores::kCount; ++i)
        if (Scores::line(i) == h) at[h] = ptx::max_nan(at[h], s[i]);
    }
  }

  __device__ __forceinline__ float largest(int line) const { return at[line]; }
  __device__ __forceinline__ static float most(float x) { return Scores::most(x); }

  // Whether products gave so much that a key that bools hide may pass for one that is seen, or a NaN may be none: scores
  // of 2^120 are no model's.
  __device__ __forceinline__ bool doubtful() const {
    constexpr float kHuge = 0x1p120f;
    bool any = false;
#pragma unroll
    for (int h = 0; h < kRows; ++h) any |= !(at[h] < kHuge) || (at[h] < -kHuge && at[h] > least_seen_score());
    return any;
  }
};

// Scores of keys that bools hide, whatever these are. A bit each, in a loop: loads beside each score were 10 of 31 KB of
// code that nobody runs and everybody jumps over. Within the loop over tiles they stay (change_by_memory), for a loop in it
// has ptxas order all of it otherwise, and long calls took 1 to 2 % more time (H200).
template <class Scores>
__device__ __forceinline__ void hide_by_memory(Scores& s, const Launch& launch, const Work& work, int row, int column) {
  constexpr int kBits = 32, kLoads = 4;
  const MaskOne* first = mask_of(launch, work);
#pragma unroll
  for (int begin = 0; begin < Scores::kCount; begin += kBits) {
    unsigned seen = 0;
#pragma unroll kLoads
    for (int i = 0; i < kBits; ++i) {
      const int at = begin + i, line = min(row + Scores::row(at), work.queries - 1);
      const int key = min(column + Scores::column(at), work.keys - 1);
      seen |= (ptx::read_only(first + line * launch.mask_row + key * launch.mask_key) ? 1u : 0u) << i;
    }
#pragma unroll
    for (int i = 0; i < kBits; ++i)
      if (begin + i < Scores::kCount && !(seen >> i & 1)) s[begin + i] = minus_infinity();
  }
}

template <class Scores>
struct MaskRows {
  static constexpr int kTwos = Scores::kCount / 2;
  // Of a mask at a time. Where numbers are scores as they are and registers are short, ptxas puts four words where scores
  // begin, moves them on, and spills: by two three warpgroups took 6 % less time of 128 keys, but two 2 % more (H200).
  static constexpr int kMatrices = kScaledQ && kWarpgroups == 3 ? 2 : 4;
  Ring<1> turn{};
  Ahead<kWarpRows, kKeys> lanes;
  MaskTwo held[kMaskHeld ? kTwos : 1];

  __device__ __forceinline__ static int warp() { return threadIdx.x / 32 - 4; }
  __device__ __forceinline__ static unsigned rows(const Rooms& at) { return at.ahead + warp() * kWarpRows * kAheadRow; }
  // In a pair, of all rows of a warpgroup.
  __device__ __forceinline__ static unsigned full(const Rooms& at) {
    return at.mask_full + 8 * (kPair ? warp() / 4 : warp());
  }

  // Both blocks of a pair fetch into what this warp has read.
  __device__ __forceinline__ static void release(const Rooms& at) {
    if constexpr (kPair) {
      ptx::fence_proxy_async();
      __syncwarp();
      const unsigned empty = at.mask_empty + 8 * (warp() / 4);
      if (ptx::elect_one()) {
        ptx::mbarrier_arrive(empty);
        ptx::mbarrier_arrive_remote(ptx::map_shared(empty, other_block()));
      }
    }
  }

  // Of another tile of rows.
  __device__ __forceinline__ void begin(const Launch& launch, const Work& work, const Rooms& at) {
    if constexpr (kAheadRow > 0 && !kBoxes)
      lanes = Ahead<kWarpRows, kKeys>(launch, work, work.row + warp() * kWarpRows, rows(at));
  }

  // Keys from `key` on; not `Whole`, they may end within the tile. What lies outside of the tensor is zeros.
  template <bool Whole>
  __device__ __forceinline__ void fetch(const Launch& launch, const Work& work, const Rooms& at, int key) {
    if constexpr (kPair) return;  // a warp of the producer's does
    if constexpr (kBoxes) {
      // All have read the tile before: an arrival does not wait for loads, and no box either.
      ptx::fence_proxy_async();
      __syncwarp();
      if (ptx::elect_one()) {
        ptx::mbarrier_arrive_expect(full(at), kWarpRows * kAheadRow);
        ptx::tensor_load(rows(at), &launch.mask_map, full(at), key, work.row + warp() * kWarpRows,
                         launch.mask_head ? work.head : 0, launch.mask_batch ? work.batch : 0);
      }
    } else if constexpr (kAheadRow > 0) {
      lanes.template fetch<Whole>(launch, work, key);
    }
  }

  __device__ __forceinline__ void wait(const Rooms& at) {
    if constexpr (kBoxes) {
      ptx::mbarrier_wait(full(at), turn.parity());
    } else if constexpr (kAheadRow > 0) {
      lanes.wait();
    }
  }

  // What products are added to.
  __device__ __forceinline__ void seed(Scores& s, const Launch& launch, const Rooms& at) {
    if constexpr (kSeeded) {
      wait(at);
      const float scale = kScaledQ ? 1.f : mask_scale(launch);
      each_two<Scores, kMatrices>(rows(at), [&](int i, MaskTwo two) { seed_two(s[i], s[i + 1], two, scale); });
      leave(at);
    }
  }

  // Exactly, and whatever products gave; the largest that are left. Rows in shared memory are the next tile's by now: that
  // they stay until these scores are p took an H200 10 % of head dim 64.
  template <bool First>
  __device__ __forceinline__ static Largest<Scores> hide_again(Scores& s, const Launch& launch, const Work& work,
                                                               int row, int column) {
    const Largest<Scores> found(s);
    if (!__any_sync(~0u, found.doubtful())) return found;
    if constexpr (First)
      hide_by_memory(s, launch, work, row, column);
    else
      change_by_memory<kFewAtOnce>(s, launch, work, row, column);
    return Largest<Scores>(s);
  }

  __device__ __forceinline__ void leave(const Rooms& at) {
    release(at);
    turn.advance();
  }

  // While scores are multiplied.
  __device__ __forceinline__ void hold(const Rooms& at) {
    if constexpr (kMaskHeld) {
      wait(at);
      each_two<Scores>(rows(at), [&](int i, MaskTwo two) { held[i / 2] = two; });
      leave(at);
    }
  }

  __device__ __forceinline__ void change(Scores& s, const Launch& launch, const Work& work, const Rooms& at, int row,
                                         int column) {
    if constexpr (kSeeded) return;
    if constexpr (kMaskHeld) {
      const float scale = mask_scale(launch);
#pragma unroll
      for (int i = 0; i < kTwos; ++i) change_two(s[2 * i], s[2 * i + 1], held[i], scale);
    } else {
      wait(at);
      ::change(s, launch, work, row, column, rows(at));
      leave(at);
    }
  }
};
