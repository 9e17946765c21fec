// C = A * B transposed, bf16 in, f32 out, by pairs of blocks in the manner of sm100a (cta_group::2): a pair computes M
// x 128 of C, where M is 256 or 128. Each block loads half of the rows of A and half of the columns of B; one thread of
// the block of rank 0 multiplies for both; each block has half of the rows of C in its tensor memory.
//
// `planted` is one mistake, so that the emulator's tests can see it found. 0 is the right kernel.
#include "ptx/cluster.cuh"
#include "ptx/memory.cuh"
#include "ptx/tcgen05.cuh"
#include "ptx/tma.cuh"

enum Bug {
  NONE,
  MISSING_PEER_WAIT,
  COMMIT_TO_ONE_BLOCK,
  ALLOC_BY_ONE_BLOCK,
  DEALLOC_BY_ONE_BLOCK,
  ALLOC_OF_DIFFERENT_COLUMNS,
  MIXED_GROUPS,
  INSTRUCTION_OF_ONE_BLOCK,
  MISSING_FENCE,
  MISSING_LAST_BARRIER,
};

constexpr int kRows = M / 2, kColumns = 128, kHalf = kColumns / 2, kDepth = 64, kStages = 2;
constexpr int kABytes = kRows * kDepth * 2, kBBytes = kHalf * kDepth * 2;
constexpr unsigned kLoader = 128, kSixth = 160, kThreads = 192, kLeader = 0;

struct Rooms {
  unsigned a = ptx::shared_base(), b = a + kStages * kABytes, full = b + kStages * kBBytes;
  unsigned peer_full = full + 8 * kStages, empty = peer_full + 8 * kStages, done = empty + 8 * kStages;
  unsigned tensor_memory = done + 8;
};

__device__ __forceinline__ void load(const Rooms& at, const ptx::TensorMap* a, const ptx::TensorMap* b, int steps) {
  const int half = static_cast<int>(blockIdx.y) * kColumns + static_cast<int>(ptx::cluster_rank()) * kHalf;
  for (int step = 0; step < steps; ++step) {
    const int stage = step % kStages;
    const unsigned full = at.full + 8 * stage;
    if (step >= kStages) ptx::mbarrier_wait(at.empty + 8 * stage, (step / kStages - 1) & 1);
    ptx::mbarrier_arrive_expect(full, kABytes + kBBytes);
    ptx::tensor_load(at.a + stage * kABytes, a, full, step * kDepth, static_cast<int>(blockIdx.x) * kRows);
    ptx::tensor_load(at.b + stage * kBBytes, b, full, step * kDepth, half);
  }
}

// The other block tells the leader that its halves have come.
__device__ __forceinline__ void relay(const Rooms& at, int steps) {
  for (int step = 0; step < steps; ++step) {
    const int stage = step % kStages;
    ptx::mbarrier_wait(at.full + 8 * stage, step / kStages & 1);
    ptx::mbarrier_arrive_remote(ptx::map_shared(at.peer_full + 8 * stage, kLeader));
  }
}

__device__ __forceinline__ void multiply(const Rooms& at, unsigned d, int steps, int bug) {
  const unsigned rows = bug == INSTRUCTION_OF_ONE_BLOCK ? 64 : M;
  const unsigned instruction = ptx::tcgen05_instruction(ptx::Operand::bf16, ptx::Operand::bf16, rows, kColumns);
  for (int step = 0; step < steps; ++step) {
    const int stage = step % kStages, phase = step / kStages & 1;
    ptx::mbarrier_wait(at.full + 8 * stage, phase);
    if (bug != MISSING_PEER_WAIT) ptx::mbarrier_wait(at.peer_full + 8 * stage, phase);
    ptx::tcgen05_fence_after();
    const unsigned long long a = ptx::tcgen05_tile(at.a + stage * kABytes),
                             b = ptx::tcgen05_tile(at.b + stage * kBBytes);
    for (int i = 0; i < kDepth / 16; ++i) {
      if (bug == MIXED_GROUPS)
        ptx::tcgen05_mma_f16_ss<1>(d, a, b, instruction, step + i > 0);
      else
        ptx::tcgen05_mma_f16_ss<2>(d, a + ptx::tcgen05_slice(i), b + ptx::tcgen05_slice(i), instruction, step + i > 0);
    }
    if (bug == COMMIT_TO_ONE_BLOCK)
      ptx::tcgen05_commit<2>(at.empty + 8 * stage);
    else
      ptx::tcgen05_commit_multicast<2>(at.empty + 8 * stage, 3);
  }
  ptx::tcgen05_commit_multicast<2>(at.done, 3);
}

// 128 rows of a block: a lane holds one. 64 rows: lanes from 64 on hold the second half of the columns.
__device__ __forceinline__ void take_out(const Rooms& at, unsigned d, float* c, int pitch, int bug) {
  constexpr int kTaken = kRows == 128 ? kColumns : kHalf;
  ptx::mbarrier_wait(at.done, 0);
  if (bug != MISSING_FENCE) ptx::tcgen05_fence_after();
  const int lane = threadIdx.x, row = blockIdx.x * kRows + lane % kRows;
  float* to = c + row * pitch + blockIdx.y * kColumns + lane / kRows * kHalf;
  for (int first = 0; first < kTaken; first += 32) {
    unsigned sums[32];
    ptx::tcgen05_ld_32x32b(sums, d + (lane / 32 * 32 << 16) + first);
    ptx::tcgen05_wait_ld();
    for (int i = 0; i < 32; ++i) to[first + i] = __uint_as_float(sums[i]);
  }
}

__device__ __forceinline__ void prepare(const Rooms& at, int bug) {
  const bool leads = ptx::cluster_rank() == kLeader;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      ptx::mbarrier_init(at.full + 8 * stage, 1);
      ptx::mbarrier_init(at.peer_full + 8 * stage, 1);
      ptx::mbarrier_init(at.empty + 8 * stage, 1);
    }
    ptx::mbarrier_init(at.done, 1);
    ptx::fence_mbarrier_init();
  }
  if (threadIdx.x / 32 == 0 && (leads || bug != ALLOC_BY_ONE_BLOCK)) {
    ptx::tcgen05_alloc<2>(at.tensor_memory, !leads && bug == ALLOC_OF_DIFFERENT_COLUMNS ? 64 : kColumns);
    ptx::tcgen05_relinquish<2>();
  }
  ptx::cluster_sync();
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    gemm_pair_sm100a(const __grid_constant__ ptx::TensorMap a, const __grid_constant__ ptx::TensorMap b, float* c,
                     int depth, int pitch, int planted) {
#ifdef SMSCOPE_EMULATED
  const int bug = planted;
#else
  constexpr int bug = NONE;
#endif
  const Rooms at;
  prepare(at, bug);
  const unsigned d = ptx::load_shared(at.tensor_memory);
  const int steps = depth / kDepth;
  const bool leads = ptx::cluster_rank() == kLeader;
  if (threadIdx.x == kLoader) load(at, &a, &b, steps);
  if (threadIdx.x == kSixth && leads) multiply(at, d, steps, bug);
  if (threadIdx.x == kSixth && !leads) relay(at, steps);
  if (threadIdx.x < kLoader) take_out(at, d, c, pitch, bug);
  __syncwarp();
  // Also so that no block ends while the other one's arrivals are on their way to it.
  if (bug != MISSING_LAST_BARRIER) ptx::cluster_sync();
  if (threadIdx.x / 32 == 0 && (leads || bug != DEALLOC_BY_ONE_BLOCK)) ptx::tcgen05_dealloc<2>(d, kColumns);
}
