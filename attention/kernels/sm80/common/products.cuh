// A warp's registers, 16 or 32 query rows of them, and its products: scores of a slice of keys, and p * V.
#pragma once
#include "fragments.cuh"
#include "online_softmax.cuh"
#include "ptx/memory.cuh"
#include "strided.cuh"

struct Products {
  static constexpr int kBlocks = kSlice / 16;                // of 16 keys, the K of p * V
  static constexpr int kKFragments = kBlocks * kDepth;       // of K in a slice
  static constexpr int kVFragments = kBlocks * kValueDepth;  // and of V
  static constexpr int kFragments = kKFragments + kVFragments, kRing = AHEAD + 1;
  // Whether the next slice's first fragments may be fetched under this one's last: they must lie where it looks for them.
  static constexpr bool kPrimes = kFragments % kRing == 0;
  static_assert(AHEAD <= kKFragments && AHEAD <= kVFragments);

  const Rooms at;
  const Address<KeyRow> by_rows, by_columns;
  RowPair<kValueDim / 2> o[kPanels];
  RowPair<kSlice / 2> s[kPanels];
  unsigned q[kPanels][kQInRegisters ? kDepth : 2][4], p[kPanels][kBlocks][4];
  unsigned f[kRing][4];  // fragments of K and V on their way to a product
  Softmax<2> state[kPanels];

  __device__ __forceinline__ Products() : at(ptx::shared_base()), by_rows(true), by_columns(false) {}

  // Where a lane reads V: as it reads Q, where rows are alike.
  __device__ __forceinline__ auto of_values() const {
    if constexpr (kUnlike)
      return Address<ValueRow>(true);
    else
      return by_rows;
  }

  // This warp's first row within the block's.
  __device__ __forceinline__ static int warp_row() {
    const int warp = threadIdx.x / 32;
    return (kKeyWarps > 1 ? warp % kRowWarps : warp) * kWarpRows;
  }
  // Which of those that share its rows this warp is, and its first key within a tile.
  __device__ __forceinline__ static int key_warp() { return kKeyWarps > 1 ? threadIdx.x / 32 / kRowWarps : 0; }
  __device__ __forceinline__ static int warp_key() { return key_warp() * kSlices * kSlice; }
  __device__ __forceinline__ static int lane() { return threadIdx.x % 32; }

  __device__ __forceinline__ void load_q(int column, int slot) {
#pragma unroll
    for (int m = 0; m < kPanels; ++m)
      ptx::ldmatrix(q[m][slot], by_rows.of(at.q + (warp_row() + m * 16) * KeyRow::kBytes, column));
  }

  // Fragment i of a step: first those of K, then those of V, then those of the next step's K.
  __device__ __forceinline__ void fetch(int i, unsigned k, unsigned v, unsigned k_next) {
    unsigned (&to)[4] = f[i % kRing];
    if (i >= kKFragments && i < kFragments) {
      const int j = i - kKFragments;
      ptx::ldmatrix_trans(to, of_values().of(v + j / kValueDepth * 16 * ValueRow::kBytes, j % kValueDepth));
    } else {
      const int j = i % kFragments;
      ptx::ldmatrix(to, by_columns.of((i < kFragments ? k : k_next) + j % kBlocks * 16 * KeyRow::kBytes, j / kBlocks));
    }
  }

  // Products of fragment i of K, and of V.
  __device__ __forceinline__ void multiply_k(int i) {
    const int column = i / kBlocks, block = i % kBlocks;
    const unsigned (&b)[4] = f[i % kRing];
#pragma unroll
    for (int m = 0; m < kPanels; ++m) {
      const unsigned (&a)[4] = q[m][kQInRegisters ? column : column % 2];
      multiply(s[m].at + 8 * block, a, b[0], b[1]);
      multiply(s[m].at + 8 * block + 4, a, b[2], b[3]);
    }
  }

  __device__ __forceinline__ void multiply_v(int i) {
    const int block = i / kValueDepth, column = i % kValueDepth;
    const unsigned (&b)[4] = f[(kKFragments + i) % kRing];
#pragma unroll
    for (int m = 0; m < kPanels; ++m) {
      multiply(o[m].at + 8 * column, p[m][block], b[0], b[1]);
      multiply(o[m].at + 8 * column + 4, p[m][block], b[2], b[3]);
    }
  }

  __device__ __forceinline__ void clear_scores() {
#pragma unroll
    for (int m = 0; m < kPanels; ++m) zero(s[m]);
  }

  // s = Q K^T of a slice, and o += p V, by themselves.
  __device__ __forceinline__ void multiply_scores(unsigned k) {
    clear_scores();
#pragma unroll
    for (int i = 0; i < kKFragments; ++i) {
      if (!kQInRegisters && i % kBlocks == 0) load_q(i / kBlocks, i / kBlocks % 2);
      fetch(i, k, 0, 0);
      multiply_k(i);
    }
  }

  __device__ __forceinline__ void multiply_values(unsigned v) {
#pragma unroll
    for (int i = 0; i < kVFragments; ++i) {
      fetch(kKFragments + i, 0, v, 0);
      multiply_v(i);
    }
  }
};
