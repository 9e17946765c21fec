// FlashAttention-2 forward of one head, D = 64 or 128 (HEAD_DIM), bf16 in, f32 out, in the manner of sm80: cp.async in
// two stages, ldmatrix, mma m16n8k16. A block takes 64 queries, a warp 16 of them; keys come in tiles of 64.
//
// `bug` plants one mistake, so that the emulator's tests can see it found. 0 is the right kernel.
#include "ptx/convert.cuh"
#include "ptx/cp_async.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/math.cuh"
#include "ptx/memory.cuh"
#include "ptx/mma_sync.cuh"

#ifndef HEAD_DIM
#define HEAD_DIM 64
#endif

enum Bug {
  NONE,
  MISSING_WAIT,
  TOO_FEW_COMMITS,
  MISSING_BARRIER_AFTER_LOAD,
  MISSING_BARRIER_BEFORE_REUSE,
  SWAPPED_FRAGMENT,
  WRONG_SWIZZLE,
  SHARED_OUT_OF_BOUNDS,
  GLOBAL_OUT_OF_BOUNDS,
  DIVERGENT_COLLECTIVE,
};

constexpr int kDim = HEAD_DIM, kTile = 64, kRowBytes = 2 * kDim, kTileBytes = kTile * kRowBytes, kWarps = 4;
constexpr int kSlices = kDim / 16, kRowChunks = kDim / 8;  // of k16; of 16 bytes

// Chunks of 16 bytes, xored with the row: eight rows of one column lie in eight bank groups.
__device__ __forceinline__ unsigned chunk_at(unsigned tile, int row, int chunk) {
  return tile + row * kRowBytes + ((chunk ^ (row & 7)) << 4);
}

__device__ __forceinline__ void load_tile(unsigned tile, const unsigned short* rows) {
  for (int i = threadIdx.x; i < kTile * kRowChunks; i += 32 * kWarps)
    ptx::cp_async16(chunk_at(tile, i / kRowChunks, i % kRowChunks), rows + 8 * i);
}

__device__ __forceinline__ float row_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}

__device__ __forceinline__ float row_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

extern "C" __global__ void __launch_bounds__(32 * kWarps)
    attention_sm80(const unsigned short* q, const unsigned short* k, const unsigned short* v, float* out, int keys,
                   float scale_log2, int bug) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, first = blockIdx.x * kTile;
  const unsigned q_tile = ptx::shared_base(), k_tiles = q_tile + kTileBytes, v_tiles = k_tiles + 2 * kTileBytes;
  const int tiles = keys / kTile;
  load_tile(q_tile, q + first * kDim);
  load_tile(k_tiles, k);
  load_tile(v_tiles, v);
  ptx::cp_async_commit();

  float o[kDim / 8][4] = {}, most[2] = {-1e30f, -1e30f}, sum[2] = {0.f, 0.f};
  unsigned fq[kSlices][4];
  for (int tile = 0; tile < tiles; ++tile) {
    const unsigned stage = (tile & 1) * kTileBytes, next = kTileBytes - stage;
    if (tile + 1 < tiles) {
      const int more = bug == GLOBAL_OUT_OF_BOUNDS ? tile + 2 : tile + 1;
      load_tile(k_tiles + next, k + more * kTile * kDim);
      load_tile(v_tiles + next, v + more * kTile * kDim);
    }
    if (bug != TOO_FEW_COMMITS || tile + 1 == tiles) ptx::cp_async_commit();
    if (bug != MISSING_WAIT) ptx::cp_async_wait<1>();
    if (bug != MISSING_BARRIER_AFTER_LOAD) __syncthreads();
    if (tile == 0)
      for (int i = 0; i < kSlices; ++i)
        ptx::ldmatrix(fq[i], chunk_at(q_tile, warp * 16 + lane % 16, 2 * i + lane / 16));

    float s[8][4] = {};
    for (int i = 0; i < kSlices; ++i)
      for (int n = 0; n < 4; ++n) {
        unsigned fk[4];
        int row = n * 16 + lane % 8 + lane / 16 * 8, chunk = 2 * i + lane / 8 % 2;
        if (bug == WRONG_SWIZZLE)
          ptx::ldmatrix(fk, k_tiles + stage + row * kRowBytes + ((chunk ^ (row & 3)) << 4));
        else
          ptx::ldmatrix(fk, chunk_at(k_tiles + stage + (bug == SHARED_OUT_OF_BOUNDS) * 4 * kTileBytes, row, chunk));
        const unsigned left[2] = {fk[0], fk[1]}, right[2] = {fk[2], fk[3]};
        ptx::mma_m16n8k16_bf16(s[2 * n], fq[i], bug == SWAPPED_FRAGMENT ? right : left);
        ptx::mma_m16n8k16_bf16(s[2 * n + 1], fq[i], bug == SWAPPED_FRAGMENT ? left : right);
      }

    unsigned p[8][2];
    for (int h = 0; h < 2; ++h) {
      float m = most[h];
      for (int n = 0; n < 8; ++n) m = fmaxf(m, fmaxf(s[n][2 * h], s[n][2 * h + 1]) * scale_log2);
      if (bug != DIVERGENT_COLLECTIVE || lane < 16) m = row_max(m);
      const float correction = ptx::ex2(most[h] - m);
      most[h] = m;
      float tile_sum = 0.f;
      for (int n = 0; n < 8; ++n) {
        float left = ptx::ex2(s[n][2 * h] * scale_log2 - m), right = ptx::ex2(s[n][2 * h + 1] * scale_log2 - m);
        tile_sum += left + right;
        p[n][h] = ptx::pack_bf16(left, right);
      }
      sum[h] = sum[h] * correction + tile_sum;
      for (int n = 0; n < kDim / 8; ++n) {
        o[n][2 * h] *= correction;
        o[n][2 * h + 1] *= correction;
      }
    }

    for (int i = 0; i < 4; ++i) {
      const unsigned fp[4] = {p[2 * i][0], p[2 * i][1], p[2 * i + 1][0], p[2 * i + 1][1]};
      for (int n = 0; n < kDim / 16; ++n) {
        unsigned fv[4];
        ptx::ldmatrix_trans(fv, chunk_at(v_tiles + stage, i * 16 + lane % 16, 2 * n + lane / 16));
        const unsigned left[2] = {fv[0], fv[1]}, right[2] = {fv[2], fv[3]};
        ptx::mma_m16n8k16_bf16(o[2 * n], fp, left);
        ptx::mma_m16n8k16_bf16(o[2 * n + 1], fp, right);
      }
    }
    if (bug != MISSING_BARRIER_BEFORE_REUSE) __syncthreads();
  }

  for (int h = 0; h < 2; ++h) {
    const float inverse = 1.f / row_sum(sum[h]);
    float* row = out + (first + warp * 16 + lane / 4 + 8 * h) * kDim + lane % 4 * 2;
    for (int n = 0; n < kDim / 8; ++n)
      for (int j = 0; j < 2; ++j) row[n * 8 + j] = o[n][2 * h + j] * inverse;
  }
}
