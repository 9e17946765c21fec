// Attention forward of one head, D = 64 or 128 (HEAD_DIM), f16 in, f32 out, in the manner of sm70: ordinary loads
// through shared memory, mma m8n8k4. A block takes 64 queries, a warp 16 of them; keys come in tiles of 64.
//
// A warp's four quad pairs make a product of 16 x 16: pair q has rows 8 (q % 2) and columns 8 (q / 2) of it. In the
// accumulators of f32 a lane has two rows of its pair's eight, and shares them with the lanes that differ in bit 1
// (other columns of the pair) and bit 3 (the pair beside it). As a fragment of A a lane needs four neighbours of one
// row instead, so p goes through shared memory.
//
// `bug` plants one mistake, so that the emulator's tests can see it found. 0 is the right kernel.
#include "ptx/convert.cuh"
#include "ptx/math.cuh"
#include "ptx/memory.cuh"
#include "ptx/mma_sm70.cuh"

#ifndef HEAD_DIM
#define HEAD_DIM 64
#endif

enum Bug {
  NONE,
  MISSING_BARRIER_AFTER_STORE,
  MISSING_BARRIER_BEFORE_REUSE,
  MISSING_WARP_BARRIER,
  HALF_OF_A_ROW,
  SWAPPED_FRAGMENT,
  SHARED_OUT_OF_BOUNDS,
  GLOBAL_OUT_OF_BOUNDS,
};

// A row is 16 bytes longer than its numbers, so that eight rows of one column lie in eight bank groups.
constexpr int kDim = HEAD_DIM, kTile = 64, kWarps = 4, kPad = 16;
constexpr int kPitch = 2 * kDim + kPad, kTileBytes = kTile * kPitch;
constexpr int kWeightPitch = 2 * kTile + kPad, kWeightBytes = 16 * kWeightPitch;  // p of one warp

__device__ __forceinline__ void load_tile(unsigned tile, const unsigned short* rows) {
  constexpr int kChunks = kDim / 8;  // of 16 bytes, in a row
  for (int i = threadIdx.x; i < kTile * kChunks; i += 32 * kWarps)
    ptx::store_shared4(tile + i / kChunks * kPitch + i % kChunks * 16,
                       ptx::load4(reinterpret_cast<ptx::u64>(rows + 8 * i)));
}

// Four f16 in a row: a fragment of m8n8k4.
__device__ __forceinline__ void load_fragment(unsigned (&f)[2], unsigned address) {
  const ptx::u64 both = ptx::load_shared2(address);
  f[0] = static_cast<unsigned>(both);
  f[1] = static_cast<unsigned>(both >> 32);
}

__device__ __forceinline__ float row_max(float x, int bug) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 2));
  return bug == HALF_OF_A_ROW ? x : fmaxf(x, __shfl_xor_sync(~0u, x, 8));
}

__device__ __forceinline__ float row_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 2);
  return x + __shfl_xor_sync(~0u, x, 8);
}

extern "C" __global__ void __launch_bounds__(32 * kWarps)
    attention_sm70(const unsigned short* q, const unsigned short* k, const unsigned short* v, float* out, int keys,
                   float scale_log2, int bug) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, pair = lane % 16 / 4, t = lane % 4, half = lane / 16;
  const int pair_row = 8 * (pair % 2), pair_column = 8 * (pair / 2), first = blockIdx.x * kTile;
  const unsigned q_tile = ptx::shared_base(), k_tile = q_tile + kTileBytes, v_tile = k_tile + kTileBytes;
  const unsigned weights = v_tile + kTileBytes + warp * kWeightBytes;
  // Row t + 4 half of the pair, as a fragment of A has it; rows r and r + 2 of it, as the accumulators have them.
  const int a_row = pair_row + t + 4 * half, d_row = pair_row + (t & 1) + 4 * half;
  load_tile(q_tile, q + first * kDim);

  float o[kDim / 16][8] = {}, most[2] = {-1e30f, -1e30f}, sum[2] = {0.f, 0.f};
  for (int tile = 0; tile < keys / kTile; ++tile) {
    const int from = (bug == GLOBAL_OUT_OF_BOUNDS ? tile + 1 : tile) * kTile * kDim;
    if (bug != MISSING_BARRIER_BEFORE_REUSE) __syncthreads();
    load_tile(k_tile, k + from);
    load_tile(v_tile + (bug == SHARED_OUT_OF_BOUNDS) * 4 * kTileBytes, v + from);
    if (bug != MISSING_BARRIER_AFTER_STORE) __syncthreads();

    float s[kTile / 16][8] = {};
    for (int i = 0; i < kDim / 4; ++i) {
      unsigned fq[2];
      load_fragment(fq, q_tile + (warp * 16 + a_row) * kPitch + 8 * i);
      for (int n = 0; n < kTile / 16; ++n) {
        unsigned fk[2];
        load_fragment(fk, k_tile + (16 * n + pair_column + t + 4 * half) * kPitch + 8 * i);
        ptx::mma_m8n8k4<ptx::Order::row, ptx::Order::col>(s[n], fq, fk);
      }
    }

    for (int h = 0; h < 2; ++h) {
      float m = most[h];
      for (int n = 0; n < kTile / 16; ++n)
        for (int i = 0; i < 4; ++i) m = fmaxf(m, s[n][i % 2 + i / 2 * 4 + 2 * h] * scale_log2);
      m = row_max(m, bug);
      const float correction = ptx::ex2(most[h] - m);
      most[h] = m;
      float tile_sum = 0.f;
      for (int n = 0; n < kTile / 16; ++n)
        for (int i = 0; i < 2; ++i) {
          const float left = ptx::ex2(s[n][4 * i + 2 * h] * scale_log2 - m);
          const float right = ptx::ex2(s[n][4 * i + 2 * h + 1] * scale_log2 - m);
          tile_sum += left + right;
          const int column = 16 * n + pair_column + 4 * i + (t & 2);
          ptx::store_shared(weights + (d_row + 2 * h) * kWeightPitch + 2 * column, ptx::pack_f16(left, right));
        }
      sum[h] = sum[h] * correction + tile_sum;
      for (int n = 0; n < kDim / 16; ++n)
        for (int i = 0; i < 4; ++i) o[n][i % 2 + i / 2 * 4 + 2 * h] *= correction;
    }
    if (bug != MISSING_WARP_BARRIER) __syncwarp();

    for (int i = 0; i < kTile / 4; ++i) {
      unsigned fp[2];
      load_fragment(fp, weights + a_row * kWeightPitch + 8 * i);
      for (int n = 0; n < kDim / 16; ++n) {
        unsigned fv[2];
        load_fragment(fv, v_tile + (4 * i + t) * kPitch + 2 * (16 * n + pair_column + 4 * half));
        if (bug == SWAPPED_FRAGMENT)
          ptx::mma_m8n8k4<ptx::Order::row, ptx::Order::col>(o[n], fp, fv);
        else
          ptx::mma_m8n8k4<ptx::Order::row, ptx::Order::row>(o[n], fp, fv);
      }
    }
  }

  for (int h = 0; h < 2; ++h) {
    const float inverse = 1.f / row_sum(sum[h]);
    float* row = out + (first + warp * 16 + d_row + 2 * h) * kDim + pair_column + (t & 2);
    for (int n = 0; n < kDim / 16; ++n)
      for (int i = 0; i < 4; ++i) row[16 * n + i % 2 + i / 2 * 4] = o[n][i % 2 + i / 2 * 4 + 2 * h] * inverse;
  }
}
