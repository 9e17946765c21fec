// Four small kernels and the mistakes one makes first in each, planted by someone who had read the PTX ISA and the
// wrappers' bodies for a GPU, but not the emulator. `planted` chooses the mistake; 0 is the right kernel.
#include "ptx/barrier.cuh"
#include "ptx/cp_async.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/memory.cuh"
#include "ptx/mma_sync.cuh"
#include "ptx/tma.cuh"
#include "ptx/wgmma.cuh"

enum Bug {
  NONE,
  SUMS_OVERWRITTEN,
  SHUFFLE_TOO_SHORT,
  SHUFFLE_IN_A_BRANCH,
  WAIT_OFF_BY_ONE,
  NO_GROUP_AT_THE_TAIL,
  WAIT_AFTER_BARRIER,
  FILLED_TOO_EARLY,
  STORE_PAST_THE_END,
  PARITY_NEVER_FLIPS,
  EXPECTS_ELEMENTS,
  NO_PROXY_FENCE,
  READ_BEFORE_WAIT,
};

// What is asked between wgmma and its wait must be known to ptxas, or it serialises them (C7514).
#ifdef SMSCOPE_EMULATED
#define BUG const int bug = planted
#else
#define BUG constexpr int bug = NONE
#endif

// sm70. sums[r] = the sum of row r: four warps reduce by shuffles, and meet in four words of shared memory.
extern "C" __global__ void __launch_bounds__(128)
    row_sums(const float* x, float* sums, int rows, int columns, int planted) {
  BUG;
  const int thread = threadIdx.x, lane = thread % 32;
  const unsigned partials = ptx::shared_base();
  for (int row = 0; row < rows; ++row) {
    float sum = 0;
    for (int column = thread; column < columns; column += 128) sum += x[row * columns + column];
    if (bug != SHUFFLE_IN_A_BRANCH || thread < columns)
      for (int far = bug == SHUFFLE_TOO_SHORT ? 8 : 16; far > 0; far /= 2) sum += __shfl_xor_sync(~0u, sum, far);
    if (lane == 0) ptx::store_shared(partials + thread / 32 * 4, __float_as_uint(sum));
    __syncthreads();
    if (thread == 0) {
      float all = 0;
      for (int warp = 0; warp < 4; ++warp) all += __uint_as_float(ptx::load_shared(partials + warp * 4));
      sums[row] = all;
    }
    if (bug != SUMS_OVERWRITTEN) __syncthreads();
  }
}

#if defined(SMSCOPE_EMULATED) || __CUDA_ARCH__ >= 800

constexpr int kSlice = 16, kStages = 3, kStageBytes = (32 + 8) * kSlice * 2;

// Every thread brings a chunk of the 32 rows of A, the first 16 one of the 8 rows of B.
__device__ __forceinline__ void load_slice(unsigned ring, int tile, const unsigned short* a, const unsigned short* b,
                                           int depth) {
  const unsigned stage = ring + tile % kStages * kStageBytes;
  const int row = threadIdx.x / 2, chunk = threadIdx.x % 2;
  const int from = row * depth + tile * kSlice + chunk * 8;
  ptx::cp_async16(stage + row * 32 + chunk * 16, a + from);
  if (row < 8) ptx::cp_async16(stage + 1024 + row * 32 + chunk * 16, b + from);
}

// sm80. c = a b^T in f16 with f32 sums: a 32 x depth, b 8 x depth, c 32 x 8. Two warps, a ring of three slices.
extern "C" __global__ void __launch_bounds__(64)
    product(const unsigned short* a, const unsigned short* b, float* c, int depth, int planted) {
  BUG;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, tiles = depth / kSlice;
  const unsigned ring = ptx::shared_base(), out = ring + kStages * kStageBytes;
  for (int tile = 0; tile < kStages - 1; ++tile) {
    load_slice(ring, tile, a, b, depth);
    ptx::cp_async_commit();
  }
  float d[4] = {};
  for (int tile = 0; tile < tiles; ++tile) {
    const int next = tile + kStages - 1;
    if (bug == FILLED_TOO_EARLY) {
      if (next < tiles) load_slice(ring, next, a, b, depth);
      ptx::cp_async_commit();
      ptx::cp_async_wait<kStages - 1>();
    } else if (bug == WAIT_OFF_BY_ONE) {
      ptx::cp_async_wait<kStages - 1>();
    } else if (bug != WAIT_AFTER_BARRIER) {
      ptx::cp_async_wait<kStages - 2>();
    }
    __syncthreads();
    if (bug == WAIT_AFTER_BARRIER) ptx::cp_async_wait<kStages - 2>();
    if (bug != FILLED_TOO_EARLY) {
      if (next < tiles) load_slice(ring, next, a, b, depth);
      if (bug != NO_GROUP_AT_THE_TAIL || next < tiles) ptx::cp_async_commit();
    }
    const unsigned stage = ring + tile % kStages * kStageBytes;
    unsigned fa[4], fb[2];
    ptx::ldmatrix(fa, stage + (warp * 16 + lane % 16) * 32 + lane / 16 * 16);
    ptx::ldmatrix(fb, stage + 1024 + lane % 8 * 32 + lane / 8 % 2 * 16);
    ptx::mma_m16n8k16_f16(d, fa, fb);
  }
  // Padding the rows keeps the stores off each other's banks, but the room was measured without it.
  const int pitch = bug == STORE_PAST_THE_END ? 48 : 32;
  for (int i = 0; i < 4; ++i) {
    const int row = warp * 16 + lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
    ptx::store_shared(out + row * pitch + column * 4, __float_as_uint(d[i]));
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 32 * 8; i += 64)
    c[i] = __uint_as_float(ptx::load_shared(out + i / 8 * pitch + i % 8 * 4));
}

#endif
#if defined(SMSCOPE_EMULATED) || __CUDA_ARCH__ >= 900

// sm90a. out[i] = the sum over tiles of x[tile][i], 64 wide. Warp 2 keeps two stages filled by bulk copies.
extern "C" __global__ void __launch_bounds__(96) stream(const float* x, float* out, int tiles, int planted) {
  BUG;
  const int thread = threadIdx.x;
  const unsigned ring = ptx::shared_base(), full = ring + 2 * 256, empty = full + 2 * 8;
  if (thread == 0) {
    for (int stage = 0; stage < 2; ++stage) {
      ptx::mbarrier_init(full + stage * 8, 1);
      ptx::mbarrier_init(empty + stage * 8, 64);
    }
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  if (thread == 64) {
    for (int tile = 0; tile < tiles; ++tile) {
      const int stage = tile % 2, use = tile / 2;
      if (use > 0) ptx::mbarrier_wait(empty + stage * 8, (use - 1) & 1);
      ptx::mbarrier_arrive_expect(full + stage * 8, bug == EXPECTS_ELEMENTS ? 64 : 256);
      ptx::bulk_load(ring + stage * 256, x + tile * 64, 256, full + stage * 8);
    }
  } else if (thread < 64) {
    float sum = 0;
    for (int tile = 0; tile < tiles; ++tile) {
      const int stage = tile % 2, use = tile / 2;
      ptx::mbarrier_wait(full + stage * 8, bug == PARITY_NEVER_FLIPS ? 0 : use & 1);
      sum += __uint_as_float(ptx::load_shared(ring + stage * 256 + thread * 4));
      ptx::mbarrier_arrive(empty + stage * 8);
    }
    out[thread] = sum;
  }
}

// sm90a. c = a b^T in bf16 with f32 sums: a 64 x 64, b 16 x 64, both brought by ordinary stores, c 64 x 16.
extern "C" __global__ void __launch_bounds__(128) tile(const unsigned* a, const unsigned* b, float* c, int planted) {
  BUG;
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const unsigned a_tile = ptx::shared_base(), b_tile = a_tile + 64 * 128;
  for (int i = thread; i < 64 * 32; i += 128) ptx::store_shared(a_tile + ptx::swizzle128(i * 4), a[i]);
  for (int i = thread; i < 16 * 32; i += 128) ptx::store_shared(b_tile + ptx::swizzle128(i * 4), b[i]);
  if (bug != NO_PROXY_FENCE) ptx::fence_proxy_async();
  __syncthreads();

  const unsigned long long da = ptx::wgmma_descriptor(a_tile), db = ptx::wgmma_descriptor(b_tile);
  float d[8] = {};
  ptx::wgmma_fence();
  for (int k = 0; k < 4; ++k) ptx::wgmma_bf16_ss(d, da + ptx::wgmma_slice(k), db + ptx::wgmma_slice(k), k > 0);
  ptx::wgmma_commit();
  if (bug == READ_BEFORE_WAIT)
    ptx::wgmma_wait<1>();
  else
    ptx::wgmma_wait<0>();
  for (int i = 0; i < 8; ++i) {
    const int row = warp * 16 + lane / 4 + i % 4 / 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    c[row * 16 + column] = d[i];
  }
}

#endif
