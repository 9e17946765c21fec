// Mistakes of a second look: those that a kernel survives on one GPU, in one order of blocks, or by its author's luck.
// Planted like those of blind.cu, from the PTX ISA and the wrappers' bodies for a GPU alone. 0 is the right kernel.
#include "ptx/barrier.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/memory.cuh"
#include "ptx/tma.cuh"
#include "ptx/wgmma.cuh"

enum Bug {
  NONE,
  BLOCKS_RACE,
  BLOCK_ORDER,
  IN_PLACE,
  RELEASES_THE_WRONG_STAGE,
  TOO_FEW_ARRIVALS_COUNTED,
  SCALED_WITHOUT_FENCE,
  FRAGMENT_REUSED,
  SOURCE_OVERWRITTEN,
  READ_BACK_TOO_SOON,
  STMATRIX_UNORDERED,
  EXPECTS_CLIPPED_BOX,
  ZEROED_WITHOUT_FENCE,
};

// What is asked between wgmma and its wait must be known to ptxas, or it serialises them (C7514).
#ifdef SMSCOPE_EMULATED
#define BUG const int bug = planted
#else
#define BUG constexpr int bug = NONE
#endif

// sm70. Sums x[block][i] over blocks twice: out[i] by atomics, out[64 + i] by the block that finishes last.
extern "C" __global__ void __launch_bounds__(64)
    split(const float* x, float* out, float* partial, unsigned* finished, int planted) {
  BUG;
  const int thread = threadIdx.x, mine = blockIdx.x * 64 + thread;
  const unsigned is_last = ptx::shared_base();
  if (bug == BLOCKS_RACE)
    out[thread] += x[mine];
  else
    atomicAdd(out + thread, x[mine]);

  partial[mine] = 2 * x[mine];
  __threadfence();
  __syncthreads();
  if (thread == 0) {
    const unsigned before = atomicAdd(finished, 1u);
    ptx::store_shared(is_last, (bug == BLOCK_ORDER ? blockIdx.x : before) == gridDim.x - 1);
  }
  __syncthreads();
  if (!ptx::load_shared(is_last)) return;
  __threadfence();
  float sum = 0;
  for (int block = 0; block < static_cast<int>(gridDim.x); ++block) sum += partial[block * 64 + thread];
  out[64 + thread] = sum;
}

// sm70. x[i] += x[i + 1], in place and round the end, by one block.
extern "C" __global__ void __launch_bounds__(64) smooth(float* x, int planted) {
  BUG;
  const float sum = x[threadIdx.x] + x[(threadIdx.x + 1) % 64];
  if (bug != IN_PLACE) __syncthreads();
  x[threadIdx.x] = sum;
}

#if defined(SMSCOPE_EMULATED) || __CUDA_ARCH__ >= 900

constexpr int kConsumers = 128, kTileBytesA = 64 * 128, kTileBytesB = 16 * 128;

// A fragment of m64n16, 64 x 16 row-major.
__device__ __forceinline__ void write_out(float* c, const float (&d)[8]) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = 0; i < 8; ++i) c[(warp * 16 + lane / 4 + i % 4 / 2 * 8) * 16 + i / 4 * 8 + lane % 4 * 2 + i % 2] = d[i];
}

// sm90a. c = the sum over tiles of a b[tile]^T: a 64 x 64, b[tile] 16 x 64, bf16, as the 128-byte swizzle leaves them.
// Warp 4 fills two stages; a warp gives one back when the product that read it is over, while the next one runs.
extern "C" __global__ void __launch_bounds__(160)
    pipelined(const unsigned short* a, const unsigned short* b, float* c, int tiles, int planted) {
  BUG;
  const int thread = threadIdx.x;
  const unsigned a_tile = ptx::shared_base(), ring = a_tile + kTileBytesA;
  const unsigned full = ring + 2 * kTileBytesB, empty = full + 16, a_arrived = empty + 16;
  if (thread == 0) {
    for (int stage = 0; stage < 2; ++stage) {
      ptx::mbarrier_init(full + stage * 8, 1);
      ptx::mbarrier_init(empty + stage * 8, bug == TOO_FEW_ARRIVALS_COUNTED ? 1 : 4);
    }
    ptx::mbarrier_init(a_arrived, 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  if (thread == kConsumers) {
    ptx::mbarrier_arrive_expect(a_arrived, kTileBytesA);
    ptx::bulk_load(a_tile, a, kTileBytesA, a_arrived);
    for (int tile = 0; tile < tiles; ++tile) {
      const int stage = tile % 2, use = tile / 2;
      if (use > 0) ptx::mbarrier_wait(empty + stage * 8, (use - 1) & 1);
      ptx::mbarrier_arrive_expect(full + stage * 8, kTileBytesB);
      ptx::bulk_load(ring + stage * kTileBytesB, b + tile * 16 * 64, kTileBytesB, full + stage * 8);
    }
  }
  if (thread >= kConsumers) return;

  float d[8];
  ptx::mbarrier_wait(a_arrived, 0);
  const unsigned long long da = ptx::wgmma_descriptor(a_tile);
  for (int tile = 0; tile < tiles; ++tile) {
    const int stage = tile % 2, use = tile / 2;
    ptx::mbarrier_wait(full + stage * 8, use & 1);
    const unsigned long long db = ptx::wgmma_descriptor(ring + stage * kTileBytesB);
    ptx::wgmma_fence();
    for (int k = 0; k < 4; ++k) ptx::wgmma_bf16_ss(d, da + ptx::wgmma_slice(k), db + ptx::wgmma_slice(k), tile + k > 0);
    ptx::wgmma_commit();
    ptx::wgmma_wait<1>();
    const int over = bug == RELEASES_THE_WRONG_STAGE ? stage : stage ^ 1;
    if (thread % 32 == 0 && (tile > 0 || bug == RELEASES_THE_WRONG_STAGE)) ptx::mbarrier_arrive(empty + over * 8);
  }
  ptx::wgmma_wait<0>();
  write_out(c, d);
}

// sm90a. c = the sum over rounds of 2^(rounds - 1 - round) a[round] b^T, a from registers: a[round] 64 x 64, b 16 x 64.
extern "C" __global__ void __launch_bounds__(128)
    decay(const unsigned* a, const unsigned* b, float* c, int rounds, int planted) {
  BUG;
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const unsigned b_tile = ptx::shared_base();
  for (int i = thread; i < 16 * 32; i += 128) ptx::store_shared(b_tile + ptx::swizzle128(i * 4), b[i]);
  ptx::fence_proxy_async();
  __syncthreads();
  const unsigned long long db = ptx::wgmma_descriptor(b_tile);

  float d[8] = {};
  for (int round = 0; round < rounds; ++round) {
    unsigned fa[4][4];
    // Words of two elements: row g or g + 8, k 2t or 2t + 8 of each slice of 16.
    const unsigned* rows = a + round * 64 * 32 + (warp * 16 + lane / 4) * 32 + lane % 4;
    if (bug != FRAGMENT_REUSED)
      for (int k = 0; k < 4; ++k)
        for (int i = 0; i < 4; ++i) fa[k][i] = rows[i % 2 * 8 * 32 + k * 8 + i / 2 * 4];
    for (int i = 0; i < 8; ++i) d[i] *= 2;
    if (bug != SCALED_WITHOUT_FENCE || round == 0) ptx::wgmma_fence();
    for (int k = 0; k < 4; ++k) {
      // One array for all slices, filled again while the slice before is still being multiplied.
      if (bug == FRAGMENT_REUSED)
        for (int i = 0; i < 4; ++i) fa[0][i] = rows[i % 2 * 8 * 32 + k * 8 + i / 2 * 4];
      ptx::wgmma_bf16_rs(d, fa[bug == FRAGMENT_REUSED ? 0 : k], db + ptx::wgmma_slice(k), 1);
    }
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
  }
  write_out(c, d);
}

// sm90a. out[tile] = 2 x[tile], 64 wide, by bulk stores from one buffer; mirror = the last of them, read back from out.
extern "C" __global__ void __launch_bounds__(64)
    emit(const float* x, float* out, float* mirror, int tiles, int planted) {
  BUG;
  const int thread = threadIdx.x;
  const unsigned buffer = ptx::shared_base();
  for (int tile = 0; tile < tiles; ++tile) {
    if (thread == 0 && bug != SOURCE_OVERWRITTEN) ptx::bulk_wait_read<0>();
    __syncthreads();
    ptx::store_shared(buffer + thread * 4, __float_as_uint(2 * x[tile * 64 + thread]));
    ptx::fence_proxy_async();
    __syncthreads();
    if (thread == 0) {
      ptx::bulk_store(out + tile * 64, buffer, 256);
      ptx::bulk_commit();
    }
  }
  if (thread == 0) {
    if (bug == READ_BACK_TOO_SOON)
      ptx::bulk_wait_read<0>();
    else
      ptx::bulk_wait<0>();
  }
  __syncthreads();
  mirror[thread] = out[(tiles - 1) * 64 + 63 - thread];
}

// sm90a. out = x backwards, 128 words: each warp stores two 8 x 8 matrices of 16 bits, and reads what the other stored.
extern "C" __global__ void __launch_bounds__(64) turn(const unsigned* x, unsigned* out, int planted) {
  BUG;
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const unsigned at = ptx::shared_base();
  const unsigned d[2] = {x[warp * 64 + lane], x[warp * 64 + 32 + lane]};
  ptx::stmatrix(at + warp * 256 + lane % 16 * 16, d);
  if (bug != STMATRIX_UNORDERED) __syncthreads();
  for (int i = thread; i < 128; i += 64) out[i] = ptx::load_shared(at + (127 - i) * 4);
}

// sm90a. out[i] = the sum of column i of a tensor of `rows` x 32, in boxes of 8 x 32; the last box leaves the tensor.
extern "C" __global__ void __launch_bounds__(32)
    boxes(const __grid_constant__ ptx::TensorMap x, float* out, int rows, int planted) {
  BUG;
  const int thread = threadIdx.x;
  const unsigned box = ptx::shared_base(), full = box + 8 * 128;
  if (thread == 0) {
    ptx::mbarrier_init(full, 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  float sum = 0;
  for (int first = 0; first < rows; first += 8) {
    if (thread == 0) {
      // Rows outside come as zeros, and their bytes count.
      const int here = bug == EXPECTS_CLIPPED_BOX && rows - first < 8 ? rows - first : 8;
      ptx::mbarrier_arrive_expect(full, here * 128);
      ptx::tensor_load(box, &x, full, 0, first);
    }
    ptx::mbarrier_wait(full, first / 8 & 1);
    for (int row = 0; row < 8; ++row) sum += __uint_as_float(ptx::load_shared(box + row * 128 + thread * 4));
    __syncthreads();
  }
  out[thread] = sum;
}

// sm90a. out = x backwards, `count` words of x (a multiple of 4, at most 64) and zeros behind them. The whole buffer is
// zeroed by ordinary stores, then a bulk copy lands on its beginning.
extern "C" __global__ void __launch_bounds__(64) padded(const float* x, float* out, int count, int planted) {
  BUG;
  const int thread = threadIdx.x;
  const unsigned buffer = ptx::shared_base(), full = buffer + 256;
  ptx::store_shared(buffer + thread * 4, 0);
  if (bug != ZEROED_WITHOUT_FENCE) ptx::fence_proxy_async();
  if (thread == 0) {
    ptx::mbarrier_init(full, 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  if (thread == 0) {
    ptx::mbarrier_arrive_expect(full, count * 4);
    ptx::bulk_load(buffer, x, count * 4, full);
  }
  ptx::mbarrier_wait(full, 0);
  out[thread] = __uint_as_float(ptx::load_shared(buffer + (63 - thread) * 4));
}

#endif
