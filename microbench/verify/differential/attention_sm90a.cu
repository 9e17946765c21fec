// Attention forward of one head, D = 64 or 128 (HEAD_DIM), bf16 in, f32 out, in the manner of sm90a: a producer thread
// keeps a ring of two stages filled by TMA, a warpgroup multiplies by wgmma, p stays in registers, the output leaves by
// TMA. A tile of 128 columns is two of 64, the width of the 128-byte swizzle, one after the other.
//
// `bug` plants one mistake, so that the emulator's tests can see it found. 0 is the right kernel.
#include "ptx/barrier.cuh"
#include "ptx/convert.cuh"
#include "ptx/math.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/memory.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/tma.cuh"
#include "ptx/wgmma.cuh"

#ifndef HEAD_DIM
#define HEAD_DIM 64
#endif

enum Bug {
  NONE,
  MISSING_INIT_FENCE,
  MISSING_INIT_BARRIER,
  MISSING_EMPTY_WAIT,
  MISSING_FULL_WAIT,
  WRONG_PHASE,
  TOO_FEW_EXPECTED,
  TOO_MANY_EXPECTED,
  TOO_FEW_ARRIVALS,
  EARLY_RELEASE,
  MISSING_WGMMA_WAIT,
  MISSING_WGMMA_FENCE,
  TOO_FEW_COMMITS,
  DESCRIPTOR_OFF_BY_ONE,
  WRONG_SWIZZLE,
  WRONG_MAJOR,
  MISSING_PROXY_FENCE,
  MISSING_STORE_BARRIER,
  MISSING_STORE_WAIT,
  TILE_OUT_OF_BOUNDS,
};

constexpr int kDim = HEAD_DIM, kTile = 64, kHalfBytes = kTile * 128, kTileBytes = kDim / 64 * kHalfBytes;
constexpr int kStages = 2, kConsumers = 128;

struct Rooms {
  unsigned q = ptx::shared_base(), k = q + kTileBytes, v = k + kStages * kTileBytes, out = v + kStages * kTileBytes;
  unsigned full = out + kTile * kDim * 4, empty = full + 8 * kStages, q_arrived = empty + 8 * kStages;
};

__device__ __forceinline__ void load_tile(unsigned tile, const ptx::TensorMap* map, unsigned bar, int row) {
  for (int half = 0; half < kDim / 64; ++half) ptx::tensor_load(tile + half * kHalfBytes, map, bar, 64 * half, row);
}

__device__ __forceinline__ void produce(const Rooms& at, const ptx::TensorMap* q, const ptx::TensorMap* k,
                                        const ptx::TensorMap* v, int tiles, int bug) {
  ptx::mbarrier_arrive_expect(at.q_arrived, kTileBytes);
  load_tile(at.q, q, at.q_arrived, static_cast<int>(blockIdx.x) * kTile);
  for (int tile = 0; tile < tiles; ++tile) {
    const int stage = tile % kStages;
    const unsigned full = at.full + 8 * stage;
    if (tile >= kStages && bug != MISSING_EMPTY_WAIT)
      ptx::mbarrier_wait(at.empty + 8 * stage, (tile / kStages - 1) & 1);
    const int expected = bug == TOO_FEW_EXPECTED ? 1 : bug == TOO_MANY_EXPECTED ? 3 : 2;
    ptx::mbarrier_arrive_expect(full, expected * kTileBytes);
    load_tile(at.k + stage * kTileBytes, k, full, tile * kTile);
    load_tile(at.v + stage * kTileBytes + (bug == TILE_OUT_OF_BOUNDS) * 4 * kTileBytes, v, full, tile * kTile);
  }
}

__device__ __forceinline__ float row_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}

__device__ __forceinline__ float row_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

__device__ __forceinline__ void consume(const Rooms& at, const ptx::TensorMap* out, int tiles, float scale_log2,
                                        int bug) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float o[kDim / 2] = {}, s[32] = {}, most[2] = {-1e30f, -1e30f}, sum[2] = {0.f, 0.f};
  ptx::mbarrier_wait(at.q_arrived, 0);
  for (int tile = 0; tile < tiles; ++tile) {
    const int stage = tile % kStages;
    const unsigned k_tile = at.k + stage * kTileBytes, v_tile = at.v + stage * kTileBytes;
    if (bug != MISSING_FULL_WAIT) ptx::mbarrier_wait(at.full + 8 * stage, (tile / kStages & 1) ^ (bug == WRONG_PHASE));

    const unsigned long long dq = ptx::wgmma_descriptor(at.q);
    unsigned long long dk = ptx::wgmma_descriptor(k_tile);
    if (bug == DESCRIPTOR_OFF_BY_ONE) dk += 1;
    if (bug == WRONG_SWIZZLE) dk = ptx::matrix_descriptor(k_tile, 16, 1024, 64);
    if (bug != MISSING_WGMMA_FENCE) ptx::wgmma_fence();
    for (int i = 0; i < kDim / 16; ++i) {
      const unsigned long long slice = i / 4 * (kHalfBytes >> 4) + ptx::wgmma_slice(i % 4);
      ptx::wgmma_bf16_ss(s, dq + slice, dk + slice, i > 0);
    }
    if (bug != TOO_FEW_COMMITS) ptx::wgmma_commit();
    if (bug != MISSING_WGMMA_WAIT) ptx::wgmma_wait<0>();

    unsigned p[4][4];
    for (int h = 0; h < 2; ++h) {
      float m = most[h];
      for (int n = 0; n < 8; ++n) m = fmaxf(m, fmaxf(s[4 * n + 2 * h], s[4 * n + 2 * h + 1]) * scale_log2);
      m = row_max(m);
      const float correction = ptx::ex2(most[h] - m);
      most[h] = m;
      float tile_sum = 0.f;
      for (int n = 0; n < 8; ++n) {
        float left = ptx::ex2(s[4 * n + 2 * h] * scale_log2 - m);
        float right = ptx::ex2(s[4 * n + 2 * h + 1] * scale_log2 - m);
        tile_sum += left + right;
        p[n / 2][n % 2 * 2 + h] = ptx::pack_bf16(left, right);
      }
      sum[h] = sum[h] * correction + tile_sum;
      for (int n = 0; n < kDim / 8; ++n) {
        o[4 * n + 2 * h] *= correction;
        o[4 * n + 2 * h + 1] *= correction;
      }
    }

    // V lies as keys x D, so D is contiguous: B is MN-major, 16 keys are two groups of eight rows, and the next 64
    // columns lie in the other half.
    ptx::wgmma_fence();
    for (int i = 0; i < 4; ++i) {
      const unsigned long long dv = ptx::matrix_descriptor(v_tile + i * 2048, kHalfBytes, 1024, 128);
      if (bug == WRONG_MAJOR)
        ptx::wgmma_bf16_rs(o, p[i], dv, 1);
      else
        ptx::wgmma_bf16_rs<ptx::Major::MN>(o, p[i], dv, 1);
    }
    ptx::wgmma_commit();
    if (bug == EARLY_RELEASE) ptx::mbarrier_arrive(at.empty + 8 * stage);
    ptx::wgmma_wait<0>();
    if (bug != EARLY_RELEASE && (bug != TOO_FEW_ARRIVALS || threadIdx.x)) ptx::mbarrier_arrive(at.empty + 8 * stage);
  }

  for (int h = 0; h < 2; ++h) {
    const float inverse = 1.f / row_sum(sum[h]);
    const unsigned row = at.out + (warp * 16 + lane / 4 + 8 * h) * (4 * kDim) + lane % 4 * 8;
    for (int n = 0; n < kDim / 8; ++n)
      for (int j = 0; j < 2; ++j)
        ptx::store_shared(row + n * 32 + 4 * j, __float_as_uint(o[4 * n + 2 * h + j] * inverse));
  }
  if (bug != MISSING_PROXY_FENCE) ptx::fence_proxy_async();
  if (bug != MISSING_STORE_BARRIER) ptx::barrier_sync(1, kConsumers);
  if (threadIdx.x == 0) {
    ptx::tensor_store(out, at.out, 0, static_cast<int>(blockIdx.x) * kTile);
    ptx::bulk_commit();
    if (bug != MISSING_STORE_WAIT) ptx::bulk_wait<0>();
  }
}

extern "C" __global__ void __launch_bounds__(256, 1)
    attention_sm90a(const __grid_constant__ ptx::TensorMap q, const __grid_constant__ ptx::TensorMap k,
                    const __grid_constant__ ptx::TensorMap v, const __grid_constant__ ptx::TensorMap out, int keys,
                    float scale_log2, int planted) {
#ifdef SMSCOPE_EMULATED
  const int bug = planted;
#else
  constexpr int bug = NONE;  // a branch between wgmma and wait would make ptxas serialise them (C7514)
#endif
  const Rooms at;
  if (threadIdx.x == kConsumers) {
    for (int stage = 0; stage < kStages; ++stage) {
      ptx::mbarrier_init(at.full + 8 * stage, 1);
      ptx::mbarrier_init(at.empty + 8 * stage, kConsumers);
    }
    ptx::mbarrier_init(at.q_arrived, 1);
    if (bug != MISSING_INIT_FENCE) ptx::fence_mbarrier_init();
  }
  if (bug != MISSING_INIT_BARRIER) __syncthreads();

  if (threadIdx.x >= kConsumers) {
    ptx::setmaxnreg_decrease<40>();
    if (threadIdx.x == kConsumers) produce(at, &q, &k, &v, keys / kTile, bug);
  } else {
    ptx::setmaxnreg_increase<232>();
    consume(at, &out, keys / kTile, scale_log2, bug);
  }
}
