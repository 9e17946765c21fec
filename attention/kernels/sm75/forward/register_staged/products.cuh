// A warp's registers, 16 or 32 query rows of them, and its products: scores of a tile of keys, and p V.
#pragma once
#include "fragments.cuh"
#include "staged_rows.cuh"
#include "store.cuh"
#include "strided.cuh"

struct Products {
  static constexpr int kFragments = kBlocks * kDepth;  // of K in a tile, and of V

  const Rooms at;
  const unsigned q_at, k_at, v_at;  // where this lane reads first
  RowPair<kHeadDim / 2> o[kPanels];
  RowPair<kKeys / 2> s[kPanels];
  unsigned q[kPanels][kQInRegisters ? kDepth : 2][4], p[kPanels][kBlocks][4];

  __device__ __forceinline__ Products()
      : at(ptx::shared_base()),
        q_at(at.q + warp_row() * kPitch + lane_address(true)),
        k_at(at.k + lane_address(false)),
        v_at(at.v + lane_address(true)) {}

  // This warp's first row within the block's.
  __device__ __forceinline__ static int warp_row() { return threadIdx.x / 32 * kWarpRows; }
  __device__ __forceinline__ static int lane() { return threadIdx.x % 32; }

  // Row 0 is the block's first. Rows from `rows` on are zeros. To registers, a quad loads 32 columns of a row, and its
  // lanes trade words: a lane of an operand has two neighbouring columns in every eight.
  __device__ __forceinline__ void load_queries(const Loader& loader, const unsigned short* from, long long stride,
                                               int rows, int head_dim) {
    if constexpr (!kQInRegisters) {
      Staged<kTileRows> staged;
      loader.fetch(staged, from, stride, rows, head_dim);
      loader.put<kPitch, 0>(at.q, staged);
      return;
    }
#pragma unroll
    for (int m = 0; m < kPanels; ++m)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = warp_row() + 16 * m + 8 * h + lane() / 4;
#pragma unroll
        for (int span = 0; span < kSpans; span += 4) {
          const int column = 8 * (span + lane() % 4);
          ptx::vec4 words = {0, 0, 0, 0};
          if (row < rows && column < head_dim)
            words = ptx::load4(reinterpret_cast<ptx::u64>(from + row * stride + column));
          unsigned mine[4] = {words.x, words.y, words.z, words.w};
          transpose_quad(mine, lane() % 4);
#pragma unroll
          for (int i = 0; i < 4; ++i)
            if (span + i < kSpans) q[m][kQInRegisters ? (span + i) / 2 : 0][i % 2 * 2 + h] = mine[i];
        }
      }
  }

  __device__ __forceinline__ void load_q(int column, int slot) {
#pragma unroll
    for (int m = 0; m < kPanels; ++m) ptx::ldmatrix(q[m][slot], q_at + 16 * m * kPitch + 32 * column);
  }

  // Fragment i of K, keys before columns: lower keys of both spans, then upper ones.
  __device__ __forceinline__ void load_k(unsigned (&to)[4], int i) const {
    ptx::ldmatrix(to, k_at + i % kBlocks * 16 * kPitch + i / kBlocks * 32);
  }

  // Fragment i of V, columns before keys: lower and upper keys of the first eight columns, then of the others.
  __device__ __forceinline__ void load_v(unsigned (&to)[4], int i) const {
    ptx::ldmatrix_trans(to, v_at + i / kDepth * 16 * kPitch + i % kDepth * 32);
  }

  // s = Q K^T. The fragment after the next product's is under way.
  __device__ __forceinline__ void multiply_scores() {
#pragma unroll
    for (int m = 0; m < kPanels; ++m) zero(s[m]);
    unsigned k[2][4];
    if (!kQInRegisters) load_q(0, 0);
    load_k(k[0], 0);
#pragma unroll
    for (int i = 0; i < kFragments; ++i) {
      const int column = i / kBlocks, at = 8 * (i % kBlocks);
      if (!kQInRegisters && i % kBlocks == 0 && column + 1 < kDepth) load_q(column + 1, (column + 1) % 2);
      if (i + 1 < kFragments) load_k(k[(i + 1) % 2], i + 1);
      const unsigned (&b)[4] = k[i % 2];
#pragma unroll
      for (int span = 0; span < 2; ++span)
#pragma unroll
        for (int m = 0; m < kPanels; ++m) {
          const unsigned (&a)[4] = q[m][kQInRegisters ? column : column % 2];
          multiply(s[m].at + at, a[2 * span], a[2 * span + 1], b[span]);
          multiply(s[m].at + at + 4, a[2 * span], a[2 * span + 1], b[2 + span]);
        }
    }
  }

  // o += p V, sixteen keys at a time. Beside outputs of 256 columns ptxas would fetch V so far ahead that it spills: a
  // fence keeps it near.
  __device__ __forceinline__ void multiply_values() {
    unsigned v[2][4];
    load_v(v[0], 0);
#pragma unroll
    for (int i = 0; i < kFragments; ++i) {
      const int block = i / kDepth, at = 8 * (i % kDepth);
      if (i + 1 < kFragments) load_v(v[(i + 1) % 2], i + 1);
      if (kHeadDim > 224 && i && i % 4 == 0) __syncwarp();
      const unsigned (&b)[4] = v[i % 2];
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int m = 0; m < kPanels; ++m) {
          const unsigned (&a)[4] = p[m][block];
          multiply(o[m].at + at, a[2 * half], a[2 * half + 1], b[half]);
          multiply(o[m].at + at + 4, a[2 * half], a[2 * half + 1], b[2 + half]);
        }
    }
  }
};
