// The main loop of kernels without cp.async: one tile of K and one of V lie in shared memory. While a block multiplies by
// one of them, its part of the other one's successor is under way to registers (staged_rows.cuh).
//
// rows.cuh and config.cuh are the kernel's own: its products and softmax of a warp's rows, and where tiles lie.
#pragma once
#include "rows.cuh"
#include "staged_rows.cuh"
#include "strided.cuh"

struct StagedLoop : Rows {
  const Loader loader;

  __device__ __forceinline__ explicit StagedLoop(const Launch& launch) : Rows(launch) {}

  // Whether some row of this warp may not see some key of a tile, and whether one of them sees one.
  __device__ __forceinline__ static bool is_masked(const Work& work, int key) {
    const int row = work.row + warp_row();
    return key + kKeys > work.keys || (kCausal && key + kKeys > row + work.right + 1) ||
           (kWindow && key < row + kWarpRows - 1 + work.left);
  }
  __device__ __forceinline__ static bool is_seen(const Work& work, int key) {
    const int row = work.row + warp_row();
    return (!kCausal || key < row + kWarpRows + work.right) && (!kWindow || key + kKeys > row + work.left);
  }

  __device__ __forceinline__ void run(const Work& work) {
    const int kv_head = work.head / launch.heads_per_kv;
    const unsigned short* k_from =
        head_of(launch.k, work, kv_head, launch.k_batch, launch.k_head) + work.key_start * launch.k_row;
    const unsigned short* v_from =
        head_of(launch.v, work, kv_head, launch.v_batch, launch.v_head) + work.key_start * launch.v_row;
    Staged<kKeys> staged;
    auto fetch = [&](const unsigned short* from, long long stride, int tile) {
      const int key = tile * kKeys;
      loader.fetch(staged, from + key * stride, stride, work.keys - key, launch.head_dim);
    };
    load_queries(loader,
                 head_of(launch.q, work, work.head, launch.q_batch, launch.q_head) +
                     (work.query_start + work.row) * launch.q_row,
                 launch.q_row, work.queries - work.row, launch.head_dim);
    fetch(k_from, launch.k_row, work.last - 1);
    loader.put<kKPitch, 0>(at.k, staged);
    clear();
    __syncthreads();
#pragma unroll 1
    for (int tile = work.last - 1; tile >= work.first; --tile) {
      const int key = tile * kKeys;
      const bool masked = is_masked(work, key);
      // By a vote: else the compiler splits the loop by what follows from one condition for the other, and its halves
      // spill.
      const bool seen = __any_sync(~0u, is_seen(work, key));
      fetch(v_from, launch.v_row, tile);
      if (seen) multiply_scores();
      loader.put<kVPitch, 0>(at.v, staged);
      __syncthreads();  // V has come, and K is read
      if (tile > work.first) fetch(k_from, launch.k_row, tile - 1);
      if (seen) {
        adjust(work, key, masked);
        soften();
        pack();
        multiply_values();
      }
      if (tile > work.first) loader.put<kKPitch, 0>(at.k, staged);
      __syncthreads();  // the next K has come, and V is read
    }
  }
};
