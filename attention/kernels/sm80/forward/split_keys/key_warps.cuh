// What warps that share rows have of their keys (key_loop.cuh) is brought together in shared memory: half of them leave
// it where tiles lay, the other half adds it to its own, and so on.
#pragma once
#include "key_loop.cuh"

template <class Rows>
struct KeyWarps {
  static constexpr int kWords = kValueDim / 8 + 1, kAreaBytes = 32 * 16 * kWords;  // a lane's outputs and its state
  static constexpr int kAreas = kKeyWarps / 2;
  static_assert(kKeyWarps == 1 || (kPanels == 1 && kAreas * kRowWarps * kAreaBytes <= kRingBytes));

  Rows& rows;

  // Where a warp leaves its words: who brings them in has none of its own there that another one may still read.
  __device__ __forceinline__ unsigned area(int key_warp) const {
    const int row_warp = threadIdx.x / 32 % kRowWarps;
    return rows.at.v + (key_warp % kAreas * kRowWarps + row_warp) * kAreaBytes + 16 * rows.lane();
  }

  __device__ __forceinline__ void leave(unsigned to) const {
    const Softmax<2>& state = rows.state[0];
    ptx::store_shared4(to, words(state.offset[0], state.offset[1], state.sum[0], state.sum[1]));
    const auto& o = rows.o[0];
#pragma unroll
    for (int i = 0; i < kValueDim / 8; ++i)
      ptx::store_shared4(to + 512 * (1 + i), words(o[4 * i], o[4 * i + 1], o[4 * i + 2], o[4 * i + 3]));
  }

  // `unit`: of a difference of offsets, in log2.
  __device__ __forceinline__ void add(unsigned from, float unit) const {
    Softmax<2>& state = rows.state[0];
    const ptx::vec4 left = ptx::load_shared4(from);
    const float offset[2] = {__uint_as_float(left.x), __uint_as_float(left.y)};
    const float sum[2] = {__uint_as_float(left.z), __uint_as_float(left.w)};
    float mine[2], theirs[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float most = fmaxf(state.offset[h], offset[h]), base = most == minus_infinity() ? 0.f : most;
      mine[h] = ptx::ex2((state.offset[h] - base) * unit);
      theirs[h] = ptx::ex2((offset[h] - base) * unit);
      state.offset[h] = most;
      state.sum[h] = state.sum[h] * mine[h] + sum[h] * theirs[h];
    }
    auto& o = rows.o[0];
#pragma unroll
    for (int i = 0; i < kValueDim / 8; ++i) {
      const ptx::vec4 some = ptx::load_shared4(from + 512 * (1 + i));
      o[4 * i] = o[4 * i] * mine[0] + __uint_as_float(some.x) * theirs[0];
      o[4 * i + 1] = o[4 * i + 1] * mine[0] + __uint_as_float(some.y) * theirs[0];
      o[4 * i + 2] = o[4 * i + 2] * mine[1] + __uint_as_float(some.z) * theirs[1];
      o[4 * i + 3] = o[4 * i + 3] * mine[1] + __uint_as_float(some.w) * theirs[1];
    }
  }

  __device__ __forceinline__ static ptx::vec4 words(float x, float y, float z, float w) {
    return {__float_as_uint(x), __float_as_uint(y), __float_as_uint(z), __float_as_uint(w)};
  }
};

// The first warp of those that share rows has all keys. Behind a barrier, since tiles lie there until the last product.
template <class Rows>
__device__ __forceinline__ void join_key_warps(Rows& rows, float unit) {
  if constexpr (kKeyWarps > 1) {
    const KeyWarps<Rows> warps{rows};
#pragma unroll 1
    for (int half = kKeyWarps / 2; half; half /= 2) {
      const int mine = rows.key_warp();
      if (mine >= half && mine < 2 * half) warps.leave(warps.area(mine));
      __syncthreads();
      if (mine < half) warps.add(warps.area(mine + half), unit);
    }
  }
}
