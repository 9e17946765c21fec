// A warp: 16 or 32 query rows, whose scores and outputs live in its registers.
//
// A step issues the scores of one slice of keys, then p * V of the slice before it, and the softmax of the first runs
// on the other units under the second. Keys run downwards. Tiles of keys come in by cp.async one tile ahead, with one
// barrier a tile.
//
// No step looks for a maximum. p is taken against the largest score of the first keys, and as long as its sum over a
// slice stays small, that serves as well as the true maximum: the last division takes it out again. Where it does not,
// p, sums and outputs are divided by a power of two. Masked slices take the true maximum. Should a score ever exceed
// the first ones by 2^128, sums are infinite at the end, and the rows start again with all slices masked.
#pragma once
#include "fragments.cuh"
#include "load.cuh"
#include "masks.cuh"
#include "ptx/convert.cuh"
#include "scores.cuh"
#include "store.cuh"

struct Pipeline {
  static constexpr int kBlocks = kSlice / 16;          // of 16 keys, the K of p * V
  static constexpr int kFragments = kBlocks * kDepth;  // of K in a slice, and of V
  static constexpr int kRing = AHEAD + 1;
  static constexpr float kRoom = 1024.f;  // for a thread's sum of p in a slice: f16 holds each p below it

  const Launch& launch;
  const Rooms at;
  const Address by_rows, by_columns;
  const Loader loader;
  const unsigned short *k_from, *v_from;  // the next tile to load
  unsigned k_now, v_now, v_before;        // stages of the tile at hand, and of the one whose last slice is under way
  bool pending;                           // whether p holds a slice
  float o[kPanels][kHeadDim / 2], s[kPanels][kSlice / 2];
  unsigned q[kPanels][kQInRegisters ? kDepth : 2][4], p[kPanels][kBlocks][4];
  unsigned f[kRing][4];
  Softmax state[kPanels];

  __device__ __forceinline__ explicit Pipeline(const Launch& launch)
      : launch(launch), at(ptx::shared_base()), by_rows(true), by_columns(false) {}

  // This warp's first row within the block's.
  __device__ __forceinline__ static int warp_row() { return threadIdx.x / 32 * kWarpRows; }
  __device__ __forceinline__ static int lane() { return threadIdx.x % 32; }

  __device__ __forceinline__ void load_q(int column, int slot) {
#pragma unroll
    for (int m = 0; m < kPanels; ++m)
      ptx::ldmatrix(q[m][slot], by_rows.of(at.q + (warp_row() + m * 16) * kRowBytes, column));
  }

  // Fragment i of a step: first those of K, then those of V, then those of the next step's K.
  __device__ __forceinline__ void fetch(int i, unsigned k, unsigned v, unsigned k_next) {
    unsigned (&to)[4] = f[i % kRing];
    if (i >= kFragments && i < 2 * kFragments) {
      const int j = i - kFragments;
      ptx::ldmatrix_trans(to, by_rows.of(v + j / kDepth * 16 * kRowBytes, j % kDepth));
    } else {
      const int j = i % kFragments;
      ptx::ldmatrix(to, by_columns.of((i < kFragments ? k : k_next) + j % kBlocks * 16 * kRowBytes, j / kBlocks));
    }
  }

  // Products of fragment i of K, and of V.
  __device__ __forceinline__ void multiply_k(int i) {
    const int column = i / kBlocks, block = i % kBlocks;
    const unsigned (&b)[4] = f[i % kRing];
#pragma unroll
    for (int m = 0; m < kPanels; ++m) {
      const unsigned (&a)[4] = q[m][kQInRegisters ? column : column % 2];
      multiply(s[m] + 8 * block, a, b[0], b[1]);
      multiply(s[m] + 8 * block + 4, a, b[2], b[3]);
    }
  }

  __device__ __forceinline__ void multiply_v(int i) {
    const int block = i / kDepth, column = i % kDepth;
    const unsigned (&b)[4] = f[(kFragments + i) % kRing];
#pragma unroll
    for (int m = 0; m < kPanels; ++m) {
      multiply(o[m] + 8 * column, p[m][block], b[0], b[1]);
      multiply(o[m] + 8 * column + 4, p[m][block], b[2], b[3]);
    }
  }

  __device__ __forceinline__ void clear_scores() {
#pragma unroll
    for (int m = 0; m < kPanels; ++m)
#pragma unroll
      for (int i = 0; i < kSlice / 2; ++i) s[m][i] = 0.f;
  }

  // s = Q K^T of a slice, and o += p V, by themselves.
  __device__ __forceinline__ void multiply_scores(unsigned k) {
    clear_scores();
#pragma unroll
    for (int i = 0; i < kFragments; ++i) {
      if (!kQInRegisters && i % kBlocks == 0) load_q(i / kBlocks, i / kBlocks % 2);
      fetch(i, k, 0, 0);
      multiply_k(i);
    }
  }

  __device__ __forceinline__ void multiply_values(unsigned v) {
#pragma unroll
    for (int i = 0; i < kFragments; ++i) {
      fetch(kFragments + i, 0, v, 0);
      multiply_v(i);
    }
  }

  // Scores of keys from `key` on, as the softmax takes them.
  template <bool Masked>
  __device__ __forceinline__ void adjust(const Work& work, int key) {
#pragma unroll
    for (int m = 0; m < kPanels; ++m) {
      const int mine = work.row + warp_row() + m * 16 + lane() / 4, column = key + lane() % 4 * 2;
      if constexpr (kSoftcap) softcap(s[m], launch.softcap);
      if constexpr (kAlibi) {
        const float slope = launch.alibi[work.batch * launch.alibi_batch + work.head * launch.alibi_head];
        add_alibi(s[m], slope * launch.alibi_scale, mine + work.keys - work.queries - column);
      }
      if constexpr (kMask)
        hide_masked(s[m],
                    {launch.mask + work.batch * launch.mask_batch + work.head * launch.mask_head, launch.mask_row,
                     launch.mask_key, work.queries, work.keys},
                    mine, column);
      if constexpr (Masked)
        hide_outside<kWindow>(s[m], column, mine + work.left, kCausal ? mine + work.right + 1 : work.keys, work.keys,
                              kCausal || kWindow ? 8 : 0);
    }
  }

  __device__ __forceinline__ void pack() {
#pragma unroll
    for (int m = 0; m < kPanels; ++m)
#pragma unroll
      for (int i = 0; i < kSlice / 4; ++i) p[m][i / 4][i % 4] = pack_pair(s[m][2 * i], s[m][2 * i + 1]);
  }

  // Softmax of a slice against its true maximum.
  __device__ __forceinline__ void raise() {
#pragma unroll
    for (int m = 0; m < kPanels; ++m) {
      float correction[2];
      if (__any_sync(~0u, raise_offsets(s[m], state[m], correction, launch.scale_log2))) rescale(o[m], correction);
      exponentials_of_seen(s[m], state[m], launch.scale_log2);
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
      x = ptx::ex2(x * launch.scale_log2 - state[m].offset[h]);
      sums[m][h] = at < 4 && at % 2 == 0 ? x : sums[m][h] + x;
    }
  }

  // One slice that every row sees, and p * V of the slice before it.
  __device__ __forceinline__ void step(const Work& work, int key, unsigned k, unsigned v, unsigned k_next, bool primed,
                                       bool prime) {
    constexpr int kScores = kPanels * kSlice / 2;
    float sums[kPanels][2];
    if (!primed)
#pragma unroll
      for (int i = 0; i < AHEAD; ++i) fetch(i, k, v, k_next);
    if (!kQInRegisters) load_q(0, 0);
    clear_scores();
#pragma unroll
    for (int i = 0; i < kFragments; ++i) {
      if (!kQInRegisters && i % kBlocks == 0 && i / kBlocks + 1 < kDepth)
        load_q(i / kBlocks + 1, (i / kBlocks + 1) % 2);
      fetch(i + AHEAD, k, v, k_next);
      multiply_k(i);
    }
    if constexpr (kSoftcap || kAlibi || kMask) adjust<false>(work, key);
    if (FENCE) __syncwarp();
#pragma unroll
    for (int i = 0; i < kFragments; ++i) {
      const int ahead = kFragments + i + AHEAD;
      if (FENCE > 1 && i && i % FENCE == 0) __syncwarp();
      if (ahead < 2 * kFragments || prime) fetch(ahead, k, v, k_next);
      multiply_v(i);
      // The first products hide the latency of the scores, the last ones that of the vote.
      constexpr int kSpan = kFragments > 2 ? kFragments - 2 : 1;
      exponentials_between(i < 1 ? 0 : (i - 1) * kScores / kSpan,
                           i < 1 ? 0 : (i == kFragments - 1 ? kScores : i * kScores / kSpan), sums);
    }
    float most = 0.f;
#pragma unroll
    for (int m = 0; m < kPanels; ++m) most += sums[m][0] + sums[m][1];
    if (__any_sync(~0u, !(most <= kRoom))) make_room(sums);
#pragma unroll
    for (int m = 0; m < kPanels; ++m)
#pragma unroll
      for (int h = 0; h < 2; ++h) state[m].sum[h] += sums[m][h];
    pack();
  }

  // Divide p, its sums and the outputs of rows whose p grew large by the power of two that makes it small again.
  __device__ __forceinline__ void make_room(float (&sums)[kPanels][2]) {
#pragma unroll
    for (int m = 0; m < kPanels; ++m) {
      float factor[2];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int exponent = max(0, (__float_as_int(quad_max(sums[m][h])) >> 23) - 127);
        factor[h] = __int_as_float((127 - min(exponent, 126)) << 23);
        state[m].offset[h] += static_cast<float>(exponent);
        state[m].sum[h] *= factor[h];
        sums[m][h] *= factor[h];
      }
      rescale(s[m], factor);
      rescale(o[m], factor);
    }
  }

  // Likewise where some row may not see some key.
  __device__ __forceinline__ void masked_step(const Work& work, int key, unsigned k, unsigned v) {
    const int row = work.row + warp_row();
    const bool seen = key < work.keys && (!kCausal || key < row + kWarpRows + work.right) &&
                      (!kWindow || key + kSlice > row + work.left);
    if (seen) multiply_scores(k);
    if (pending) multiply_values(v);
    pending = seen;
    if (!seen) return;
    adjust<true>(work, key);
    raise();
  }

  // After a tile of keys: the next one, under way since, takes its place.
  __device__ __forceinline__ void turn(const Work& work, int tile) {
    v_before = v_now;
    v_now = next_v(v_now);
    k_now = next_k(k_now);
    if (tile == work.first) return;
    ptx::cp_async_wait<0>();
    __syncthreads();
  }

  __device__ __forceinline__ void load_next_k() {
    loader.load<true, kKeys>(next_k(k_now), k_from, launch.k_row, 0, launch.head_dim);
    k_from -= kKeys * launch.k_row;
  }

  __device__ __forceinline__ void load_next_v() {
    loader.load<true, kKeys>(next_v(v_now), v_from, launch.v_row, 0, launch.head_dim);
    v_from -= kKeys * launch.v_row;
    ptx::cp_async_commit();
  }

  // Where V of the slice above slice i lies: its p * V goes with the scores of slice i.
  __device__ __forceinline__ unsigned v_above(int i) const {
    return i == kSlices - 1 ? v_before : v_now + (i + 1) * kSlice * kRowBytes;
  }

  __device__ __forceinline__ void seen_tile(const Work& work, int tile) {
    const bool more = tile > work.first;
#pragma unroll
    for (int i = kSlices - 1; i >= 0; --i) {
      if (i == kSlices - 1 && more) load_next_k();
      if (i == (kSlices > 1 ? kSlices - 2 : 0) && more) load_next_v();
      const unsigned k = k_now + i * kSlice * kRowBytes;
      step(work, tile * kKeys + i * kSlice, k, v_above(i), k - kSlice * kRowBytes, i < kSlices - 1, i > 0);
    }
  }

  __device__ __forceinline__ void masked_tile(const Work& work, int tile) {
    if (tile > work.first) {
      load_next_k();
      load_next_v();
    }
#pragma unroll 1
    for (int i = kSlices - 1; i >= 0; --i)
      masked_step(work, tile * kKeys + i * kSlice, k_now + i * kSlice * kRowBytes, v_above(i));
  }

  __device__ __forceinline__ unsigned next_k(unsigned stage) const { return stage ^ at.k ^ (at.k + kTileBytes); }
  __device__ __forceinline__ unsigned next_v(unsigned stage) const {
    return stage == at.v + (kVStages - 1) * kTileBytes ? at.v : stage + kTileBytes;
  }

  __device__ __forceinline__ const unsigned short* first_row(const Work& work, const void* base, long long batch,
                                                             long long head, long long row) const {
    return static_cast<const unsigned short*>(base) + work.plane * batch + head + row + loader.column;
  }

  // Q, and the last tile of keys, whose end may lie outside of the sequence.
  __device__ __forceinline__ void begin(const Work& work) {
    const int kv_head = work.head / launch.heads_per_kv, tile = work.last - 1;
    const unsigned short* q_from = first_row(work, launch.q, launch.q_batch, work.head * launch.q_head,
                                             (work.query_start + work.row + loader.row) * launch.q_row);
    const int key = work.key_start + tile * kKeys + loader.row;
    k_from = first_row(work, launch.k, launch.k_batch, kv_head * launch.k_head, key * launch.k_row);
    v_from = first_row(work, launch.v, launch.v_batch, kv_head * launch.v_head, key * launch.v_row);
    k_now = at.k + kTileBytes;
    v_now = v_before = at.v;
    pending = false;
    loader.load<false, kTileRows>(at.q, q_from, launch.q_row, work.queries - work.row, launch.head_dim);
    loader.load<false, kKeys>(k_now, k_from, launch.k_row, work.keys - tile * kKeys, launch.head_dim);
    loader.load<false, kKeys>(v_now, v_from, launch.v_row, work.keys - tile * kKeys, launch.head_dim);
    k_from -= kKeys * launch.k_row;
    v_from -= kKeys * launch.v_row;
    ptx::cp_async_commit();
#pragma unroll
    for (int m = 0; m < kPanels; ++m) {
      for (int i = 0; i < kHeadDim / 2; ++i) o[m][i] = 0.f;
      for (int h = 0; h < 2; ++h) {
        state[m].offset[h] = minus_infinity();
        state[m].sum[h] = 0.f;
      }
    }
    ptx::cp_async_wait<0>();
    __syncthreads();
    if constexpr (kQInRegisters) {
#pragma unroll
      for (int i = 0; i < kDepth; ++i) load_q(i, i);
      __syncthreads();
    }
  }

  // Whether a condition holds in all warps of the block. The rings are free before and after.
  __device__ __forceinline__ bool in_all_warps(bool condition) const {
    const bool mine = __all_sync(~0u, condition);
    __syncthreads();
    if (lane() == 0) ptx::store_shared(at.v + threadIdx.x / 32 * 4, mine);
    __syncthreads();
    bool all = true;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) all &= ptx::load_shared(at.v + 4 * warp) != 0;
    __syncthreads();
    return all;
  }

  // `exact`: take all slices for masked ones. Whether every sum of the block is finite.
  __device__ __forceinline__ bool run(const Work& work, bool exact) {
    begin(work);
    // Tiles below `whole` are seen in full by every row, and every row has seen a key before.
    int whole = kCausal ? (work.row + work.right) / kKeys : work.last - 1;
    if (kMask || exact) whole = 0;
    int tile = work.last - 1, lowest = max(work.first, min(whole, tile));
    for (; tile >= lowest; --tile) {
      masked_tile(work, tile);
      turn(work, tile);
    }
    lowest = kWindow ? max(work.first, (work.row + kTileRows - 1 + work.left + kKeys - 1) / kKeys) : work.first;
    for (; tile >= lowest; --tile) {
      seen_tile(work, tile);
      turn(work, tile);
    }
    if constexpr (kWindow)
      for (; tile >= work.first; --tile) {
        masked_tile(work, tile);
        turn(work, tile);
      }
    if (pending) multiply_values(v_before);
    bool finite = true;
#pragma unroll
    for (int m = 0; m < kPanels; ++m) finite &= state[m].sum[0] + state[m].sum[1] < __uint_as_float(0x7f800000u);
    return in_all_warps(finite);
  }

  __device__ __forceinline__ void store(const Work& work) const {
#pragma unroll
    for (int m = 0; m < kPanels; ++m)
      store_rows(launch, work, work.row + warp_row() + m * 16 + lane() / 4, lane(), o[m], state[m]);
  }
};
