// A warp's registers, 16 or 32 query rows of them, and its products: scores of a tile of keys, and p V.
#pragma once
#include "config.cuh"
#include "quad_pair.cuh"
#include "staged_rows.cuh"
#include "store.cuh"
#include "strided.cuh"

// Scores of rows whose other keys are on another warp: `beside` is the largest of these.
struct Scores : QuadPair<kScoreKeys / 2> {
  float beside[2];

  __device__ __forceinline__ float largest_here(int line) const { return QuadPair<kScoreKeys / 2>::largest(line); }
  __device__ __forceinline__ float largest(int line) const {
    return kSplit == 1 ? largest_here(line) : fmaxf(largest_here(line), beside[line]);
  }
};

struct Products {
  static constexpr int kHalves = kKeys / 8;            // of p: eight keys, two steps of K
  static constexpr int kPairs = (kColumns + 31) / 32;  // 32 columns of V to a 16-byte load; the last may have 16

  const Rooms at;
  const Place place;
  const unsigned k_at, v_at;  // where this lane reads first
  QuadPair<kColumns / 2> o[kPanels];
  Scores s[kPanels];
  ptx::vec4 q[kPanels][kHeldSpans + (kSharedSpans ? 2 : 0)];  // behind those that stay, two that come and go
  unsigned p[kPanels][kScoreKeys / 4];
  Row4 operands[2][kPanels][2];

  __device__ __forceinline__ Products()
      : at(ptx::shared_base()),
        k_at(at.k + (part() * kScoreKeys + place.operand_key()) * kKPitch),
        v_at(at.v + place.t() * kVPitch + place.column_pair() * 16 + place.upper() * 32 + part() * kColumns * 2) {}

  // Which rows this warp has, and which part of their keys and columns; its first row within the block's.
  __device__ __forceinline__ static int row_warp() { return threadIdx.x / 32 / kSplit; }
  __device__ __forceinline__ static int part() { return kSplit == 1 ? 0 : threadIdx.x / 32 % kSplit; }
  __device__ __forceinline__ static int warp_row() { return row_warp() * kWarpRows; }

  // Where panel m of an operand has this lane's row.
  __device__ __forceinline__ unsigned operand(unsigned room, int m, int pitch, int half) const {
    const int row = place.operand_row();
    return room + (row_warp() * kPanels + m) * 2 * half + row % 8 * pitch + row / 8 * half;
  }

  // Row 0 is the block's first. Rows from `rows` on are zeros.
  __device__ __forceinline__ void load_queries(const Loader& loader, const unsigned short* from, long long stride,
                                               int rows, int head_dim) {
    if constexpr (kSharedSpans > 0) {
      Staged<kTileRows> staged;
      loader.fetch(staged, from, stride, rows, head_dim);
      loader.put<kQPitch, kHalfGap, kHeldSpans>(at.q, staged);
    }
#pragma unroll
    for (int m = 0; m < kPanels; ++m) {
      const int row = warp_row() + 16 * m + place.operand_row();
#pragma unroll
      for (int span = 0; span < kHeldSpans; ++span) {
        ptx::vec4& words = q[m][span];
        words = {0, 0, 0, 0};
        if (row < rows && 8 * span < head_dim)
          words = ptx::load4(reinterpret_cast<ptx::u64>(from + row * stride + 8 * span));
      }
    }
  }

  __device__ __forceinline__ static constexpr int slot_of(int span) {
    return span < kHeldSpans ? span : kHeldSpans + span % 2;
  }

  __device__ __forceinline__ void load_q(int span) {
    if (span < kHeldSpans || span >= kSpans) return;
#pragma unroll
    for (int m = 0; m < kPanels; ++m)
      q[m][slot_of(span)] = ptx::load_shared4(operand(at.q, m, kQPitch, kQHalf) + 16 * (span - kHeldSpans));
  }

  // s = Q K^T. The fragment after the next product's is under way.
  __device__ __forceinline__ void multiply_scores() {
#pragma unroll
    for (int m = 0; m < kPanels; ++m) zero(s[m]);
    ptx::vec4 k[2];
    load_q(0);
    k[0] = ptx::load_shared4(k_at);
#pragma unroll
    for (int span = 0; span < kSpans; ++span) {
      load_q(span + 1);
#pragma unroll
      for (int block = 0; block < kBlocks; ++block) {
        const int i = span * kBlocks + block, next = i + 1;
        if (next < kSpans * kBlocks)
          k[next % 2] = ptx::load_shared4(k_at + next % kBlocks * 16 * kKPitch + next / kBlocks * 16);
#pragma unroll
        for (int m = 0; m < kPanels; ++m) multiply_both(s[m].at + 8 * block, q[m][slot_of(span)], k[i % 2]);
      }
    }
  }

  // p as an operand, keys 8 * half on of every panel: `four` of the column pair's own keys and of the other's, or the
  // lower and the upper four.
  __device__ __forceinline__ void fetch_p(int half, int slot) {
#pragma unroll
    for (int m = 0; m < kPanels; ++m) {
      Row4(&to)[2] = operands[slot][m];
      if constexpr (kPInRegisters) {
        to[0] = row_of(p[m][2 * half], p[m][2 * half + 1]);
#pragma unroll
        for (int i = 0; i < 2; ++i) to[1].word[i] = __shfl_xor_sync(~0u, to[0].word[i], 4);
      } else {
        const ptx::vec4 words = ptx::load_shared4(operand(at.p, m, kPPitch, kPHalf) + 16 * half);
        to[0] = {words.x, words.y};
        to[1] = {words.z, words.w};
      }
    }
  }

  // 16 bytes of a key serve two products, whose columns interleave by four (store_quad_pair.cuh). Of the last 16 columns
  // of an odd number of them a lane has 8 bytes.
  __device__ __forceinline__ ptx::vec4 load_v(int four, int pair) const {
    const int other = kPInRegisters ? place.column_pair() ^ four % 2 : four % 2;
    const unsigned from = v_at + other * 4 * kVPitch + four / 2 * 8 * kVPitch + pair * 64;
    if (whole(pair)) return ptx::load_shared4(from);
    const ptx::u64 words = ptx::load_shared2(from - place.upper() * 24);
    return {static_cast<unsigned>(words), static_cast<unsigned>(words >> 32), 0, 0};
  }

  __device__ __forceinline__ static constexpr bool whole(int pair) { return kColumns % 32 == 0 || pair + 1 < kPairs; }

  // o += p V, four keys at a time.
  __device__ __forceinline__ void multiply_values() {
    ptx::vec4 v[2];
    fetch_p(0, 0);
    v[0] = load_v(0, 0);
#pragma unroll
    for (int half = 0; half < kHalves; ++half) {
      if (half + 1 < kHalves) fetch_p(half + 1, (half + 1) % 2);
#pragma unroll
      for (int i = 0; i < 2 * kPairs; ++i) {
        const int four = 2 * half + i / kPairs, pair = i % kPairs, now = four * kPairs + pair, next = now + 1;
        if (next < 2 * kHalves * kPairs) v[next % 2] = load_v(next / kPairs, next % kPairs);
        const ptx::vec4& b = v[now % 2];
#pragma unroll
        for (int m = 0; m < kPanels; ++m) {
          const Row4& a = operands[half % 2][m][four % 2];
          multiply_keys(o[m].at + 16 * pair, a, b.x, b.y);
          if (whole(pair)) multiply_keys(o[m].at + 16 * pair + 8, a, b.z, b.w);
        }
      }
    }
  }
};
