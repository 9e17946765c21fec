// C = A * B^T in the manner of sm100a: A (M x K) and B (N x K) of 8-bit floats, C (M x N) f32, a block for every 128 x
// 128 of C. One thread keeps a ring of stages filled by TMA, one issues tcgen05.mma, four warps take the sums out of
// tensor memory. ELEMENT is e4m3 or e5m2.
#include "ptx/memory.cuh"
#include "ptx/tcgen05.cuh"
#include "ptx/tma.cuh"

constexpr int kTile = 128, kDepth = 128, kStages = 3, kTileBytes = kTile * kDepth;
constexpr unsigned kProducer = 128, kIssuer = 160, kThreads = 192;

struct Rooms {
  unsigned a = ptx::shared_base(), b = a + kStages * kTileBytes, full = b + kStages * kTileBytes;
  unsigned empty = full + 8 * kStages, done = empty + 8 * kStages, tensor_memory = done + 8;
};

__device__ __forceinline__ void produce(const Rooms& at, const ptx::TensorMap* a, const ptx::TensorMap* b, int steps) {
  for (int step = 0; step < steps; ++step) {
    const int stage = step % kStages;
    const unsigned full = at.full + 8 * stage;
    if (step >= kStages) ptx::mbarrier_wait(at.empty + 8 * stage, (step / kStages - 1) & 1);
    ptx::mbarrier_arrive_expect(full, 2 * kTileBytes);
    ptx::tensor_load(at.a + stage * kTileBytes, a, full, step * kDepth, static_cast<int>(blockIdx.y) * kTile);
    ptx::tensor_load(at.b + stage * kTileBytes, b, full, step * kDepth, static_cast<int>(blockIdx.x) * kTile);
  }
}

__device__ __forceinline__ void multiply(const Rooms& at, unsigned d, int steps) {
  constexpr unsigned kInstruction =
      ptx::tcgen05_instruction(ptx::Operand::ELEMENT, ptx::Operand::ELEMENT, kTile, kTile);
  for (int step = 0; step < steps; ++step) {
    const int stage = step % kStages;
    ptx::mbarrier_wait(at.full + 8 * stage, step / kStages & 1);
    ptx::tcgen05_fence_after();
    const unsigned long long a = ptx::tcgen05_tile(at.a + stage * kTileBytes);
    const unsigned long long b = ptx::tcgen05_tile(at.b + stage * kTileBytes);
    for (int i = 0; i < kDepth / 32; ++i)
      ptx::tcgen05_mma_f8_ss(d, a + ptx::tcgen05_slice(i), b + ptx::tcgen05_slice(i), kInstruction, step + i > 0);
    ptx::tcgen05_commit(at.empty + 8 * stage);
  }
  ptx::tcgen05_commit(at.done);
}

__device__ __forceinline__ void take_out(const Rooms& at, unsigned d, float* c, int columns) {
  ptx::mbarrier_wait(at.done, 0);
  ptx::tcgen05_fence_after();
  float* row = c + static_cast<long long>(blockIdx.y * kTile + threadIdx.x) * columns + blockIdx.x * kTile;
  for (int first = 0; first < kTile; first += 32) {
    unsigned sums[32];
    ptx::tcgen05_ld_32x32b(sums, d + (threadIdx.x / 32 * 32 << 16) + first);
    ptx::tcgen05_wait_ld();
    for (int i = 0; i < 32; ++i) row[first + i] = __uint_as_float(sums[i]);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    gemm_sm100a(const __grid_constant__ ptx::TensorMap a, const __grid_constant__ ptx::TensorMap b, float* c,
                int columns, int depth) {
  const Rooms at;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      ptx::mbarrier_init(at.full + 8 * stage, 1);
      ptx::mbarrier_init(at.empty + 8 * stage, 1);
    }
    ptx::mbarrier_init(at.done, 1);
    ptx::fence_mbarrier_init();
  }
  if (threadIdx.x / 32 == 0) {
    ptx::tcgen05_alloc(at.tensor_memory, kTile);
    ptx::tcgen05_relinquish();
  }
  __syncthreads();
  const unsigned d = ptx::load_shared(at.tensor_memory);

  if (threadIdx.x == kProducer) produce(at, &a, &b, depth / kDepth);
  if (threadIdx.x == kIssuer) multiply(at, d, depth / kDepth);
  if (threadIdx.x < kProducer) take_out(at, d, c, columns);
  __syncwarp();
  __syncthreads();
  if (threadIdx.x / 32 == 0) ptx::tcgen05_dealloc(d, kTile);
}
