// Attention forward for Volta: mma m8n8k4 in quad pairs two by two, scores and outputs in registers, K and V to shared
// memory by way of registers. One tile of K and one of V lie there: while a warp multiplies by one of them, its part of
// the other one's successor is under way.
#include "config.cuh"
#include "load.cuh"
#include "rows.cuh"
#include "store_quad_pair.cuh"

struct Forward : Rows {
  const Loader loader;

  __device__ __forceinline__ explicit Forward(const Launch& launch) : Rows(launch) {}

  __device__ __forceinline__ const unsigned short* head_of(const void* base, const Work& work, int head,
                                                           long long batch_step, long long head_step) const {
    return static_cast<const unsigned short*>(base) + work.plane * batch_step + head * head_step;
  }

  __device__ __forceinline__ void load_queries(const Work& work) {
    const unsigned short* from = head_of(launch.q, work, work.head, launch.q_batch, launch.q_head) +
                                 (work.query_start + work.row) * launch.q_row;
    if constexpr (!kQInRegisters) {
      Staged<kTileRows> staged;
      loader.fetch(staged, from, launch.q_row, work.queries - work.row, launch.head_dim);
      loader.put<kKPitch, kHalfGap>(at.q, staged);
      return;
    }
#pragma unroll
    for (int m = 0; m < kPanels; ++m) {
      const int row = warp_row() + 16 * m + place.operand_row();
#pragma unroll
      for (int span = 0; span < kSpans; ++span) {
        ptx::vec4& words = q[m][kQInRegisters ? span : 0];
        words = {0, 0, 0, 0};
        if (work.row + row < work.queries && 8 * span < launch.head_dim)
          words = ptx::load4(reinterpret_cast<ptx::u64>(from + row * launch.q_row + 8 * span));
      }
    }
  }

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
    load_queries(work);
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

  __device__ __forceinline__ void store(const Work& work) const {
#pragma unroll
    for (int m = 0; m < kPanels; ++m) store_panel(launch, work, work.row + warp_row() + 16 * m, place, o[m], state[m]);
  }

  // Rows that see no key at all.
  __device__ __forceinline__ void store_none(const Work& work) const {
    for (int m = 0; m < kPanels; ++m)
      store_nothing(launch, work, work.row + warp_row() + 16 * m + place.lane / 4, place.lane);
  }
};

// The block's tile, from a shuffle that the compiler does not move: what is cheap to compute again need not occupy
// registers through the main loop.
__device__ __forceinline__ Work work_again(const Launch& launch) {
  return work_of(launch, divided(launch, __shfl_sync(~0u, static_cast<int>(blockIdx.x), 0)));
}

extern "C" __global__ void __launch_bounds__(kThreads, BLOCKS)
    attention_forward_sm70(const __grid_constant__ Launch launch) {
  Forward self(launch);
  const Work work = work_again(launch);
  if (work.sees_nothing()) return self.store_none(work);
  self.run(work);
  self.sum_up();
  self.store(work_again(launch));
}
