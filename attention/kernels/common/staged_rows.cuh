// Rows from global to shared memory by way of registers: Volta and Turing have no cp.async. A thread's part of the next tile is
// under way while products run, and is stored behind them.
//
// Threads stand in rows of `kGroup` chunks of 16 bytes and step down and across a tile: the place in shared memory is one
// register and immediates. Narrow groups leave threads of a small tile without a row, and the others with more chunks
// under way than registers hold.
#pragma once
#include "work.cuh"

constexpr int kGroup = kSpans % 8 == 0 || kSpans % 8 == 6 ? 8 : kSpans < 4 ? 2 : 4;
constexpr int kGroups = (kSpans + kGroup - 1) / kGroup, kPass = kThreads / kGroup;

template <int Rows>
struct Staged {
  static constexpr int kPasses = (Rows + kPass - 1) / kPass;
  ptx::vec4 at[kPasses][kGroups];
};

struct Loader {
  int row, chunk;  // of the thread's first 16 bytes

  __device__ __forceinline__ Loader() : row(threadIdx.x / kGroup), chunk(threadIdx.x % kGroup) {}

  // Whether the thread has a row of this pass at all.
  template <int Rows>
  __device__ __forceinline__ bool has(int pass) const {
    return Rows % kPass == 0 || row + pass * kPass < Rows;
  }

  // Whether it has a chunk of this group: the last one may be cut short.
  __device__ __forceinline__ bool has_chunk(int group) const {
    return (group + 1) * kGroup <= kSpans || group * kGroup + chunk < kSpans;
  }

  // `from` is row 0. Rows from `rows` on, and columns from `head_dim` on, become zeros.
  template <int Rows>
  __device__ __forceinline__ void fetch(Staged<Rows>& to, const unsigned short* from, long long stride, int rows,
                                        int head_dim) const {
    const unsigned short* mine = from + row * stride + 8 * chunk;
#pragma unroll
    for (int pass = 0; pass < Staged<Rows>::kPasses; ++pass)
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        const int column = 8 * (group * kGroup + chunk);
        ptx::vec4& words = to.at[pass][group];
        words = {0, 0, 0, 0};
        if (has<Rows>(pass) && row + pass * kPass < rows && column < head_dim)
          words = ptx::load4(reinterpret_cast<ptx::u64>(mine + pass * kPass * stride + group * 8 * kGroup));
      }
  }

  // Rows of K or V, or panels of rows of Q, whose eighth row is followed by a gap; their chunks from `First` on.
  template <int Pitch, int Gap, int First = 0, int Rows>
  __device__ __forceinline__ void put(unsigned to, const Staged<Rows>& from) const {
    const unsigned mine = to + row * Pitch + (Gap ? row / 8 * Gap : 0) + 16 * (chunk - First);
    static_assert(Gap == 0 || kPass % 8 == 0);
#pragma unroll
    for (int pass = 0; pass < Staged<Rows>::kPasses; ++pass)
#pragma unroll
      for (int group = 0; group < kGroups; ++group)
        if (has<Rows>(pass) && has_chunk(group) && (First <= group * kGroup || First <= group * kGroup + chunk))
          ptx::store_shared4(mine + pass * (kPass * Pitch + kPass / 8 * Gap) + group * 16 * kGroup,
                             from.at[pass][group]);
  }
};
