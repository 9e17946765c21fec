// C = A * B transposed, bf16 in, f32 out, by pairs of blocks in the manner of sm90a. The blocks of a cluster share
// their columns of C: each loads half of the tile of B and multicasts it to both, and its own tile of A. A buffer is
// free where the warps of both blocks have released it, for a peer's copy lands there too.
//
// `planted` is one mistake, so that the emulator's tests can see it found. 0 is the right kernel.
#include "ptx/cluster.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/memory.cuh"
#include "ptx/multicast.cuh"
#include "ptx/wgmma.cuh"

enum Bug {
  NONE,
  MISSING_INIT_FENCE,
  RELEASE_FOR_INIT_FENCE,
  INIT_FENCE_AFTER_BARRIER,
  MISSING_INIT_BARRIER,
  BLOCK_BARRIER_FOR_INIT,
  MASK_OF_ITSELF,
  MASK_OF_THE_PEER,
  MASK_TOO_WIDE,
  TOO_FEW_EXPECTED,
  TOO_MANY_EXPECTED,
  RELEASE_OF_ITSELF_TWICE,
  RELEASE_OF_THE_PEER_TWICE,
  ARRIVALS_OF_ONE_BLOCK,
  EARLY_RELEASE,
  MISSING_EMPTY_WAIT,
  MISSING_LAST_BARRIER,
  WRONG_HALF,
};

constexpr int kRows = 64, kColumns = 128, kDepth = 64, kStages = 2, kBlocks = 2, kWarps = 4;
constexpr int kABytes = kRows * kDepth * 2, kHalfBytes = kColumns / kBlocks * kDepth * 2;

struct Rooms {
  unsigned a = ptx::shared_base(), b = a + kStages * kABytes, full = b + kStages * kBlocks * kHalfBytes,
           empty = full + 8 * kStages;
};

__device__ __forceinline__ void produce(const Rooms& at, const ptx::TensorMap* a, const ptx::TensorMap* b, int tiles,
                                        int bug) {
  const int rank = ptx::cluster_rank();
  const int half = bug == WRONG_HALF ? 0 : rank;
  unsigned short both = 3;
  if (bug == MASK_OF_ITSELF) both = 1 << rank;
  if (bug == MASK_OF_THE_PEER) both = 2 >> rank;
  if (bug == MASK_TOO_WIDE) both = 7;
  int expected = kABytes + kBlocks * kHalfBytes;
  if (bug == TOO_FEW_EXPECTED) expected -= kHalfBytes;
  if (bug == TOO_MANY_EXPECTED) expected += kHalfBytes;
  for (int tile = 0; tile < tiles; ++tile) {
    const int stage = tile % kStages;
    const unsigned full = at.full + 8 * stage;
    if (tile >= kStages && bug != MISSING_EMPTY_WAIT)
      ptx::mbarrier_wait(at.empty + 8 * stage, (tile / kStages - 1) & 1);
    ptx::mbarrier_arrive_expect(full, expected);
    ptx::tensor_load(at.a + stage * kABytes, a, full, tile * kDepth, static_cast<int>(blockIdx.x) * kRows);
    ptx::tensor_load_multicast(at.b + (stage * kBlocks + rank) * kHalfBytes, b, full, both, tile * kDepth,
                               static_cast<int>(blockIdx.y) * kColumns + half * kColumns / kBlocks);
  }
}

// Each warp tells both blocks that it has read the stage.
__device__ __forceinline__ void release(unsigned empty, int bug) {
  if (threadIdx.x % 32) return;
  for (unsigned rank = 0; rank < kBlocks; ++rank) {
    const unsigned mine = ptx::cluster_rank();
    const unsigned to = bug == RELEASE_OF_ITSELF_TWICE ? mine : bug == RELEASE_OF_THE_PEER_TWICE ? mine ^ 1 : rank;
    ptx::mbarrier_arrive_remote(ptx::map_shared(empty, to));
  }
}

__device__ __forceinline__ void consume(const Rooms& at, float* c, int tiles, int pitch, int bug) {
  float d[kColumns / 2];
  for (int tile = 0; tile < tiles; ++tile) {
    const int stage = tile % kStages;
    ptx::mbarrier_wait(at.full + 8 * stage, tile / kStages & 1);
    const unsigned long long da = ptx::wgmma_descriptor(at.a + stage * kABytes);
    const unsigned long long db = ptx::wgmma_descriptor(at.b + stage * kBlocks * kHalfBytes);
    ptx::wgmma_fence();
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k)
      ptx::wgmma_bf16_ss(d, da + ptx::wgmma_slice(k), db + ptx::wgmma_slice(k), tile + k > 0);
    ptx::wgmma_commit();
    if (bug == EARLY_RELEASE) release(at.empty + 8 * stage, bug);
    ptx::wgmma_wait<0>();
    if (bug != EARLY_RELEASE) release(at.empty + 8 * stage, bug);
  }
  const int lane = threadIdx.x % 32, row = blockIdx.x * kRows + threadIdx.x / 32 * 16 + lane / 4;
#pragma unroll
  for (int i = 0; i < kColumns / 2; ++i)
    c[(row + i % 4 / 2 * 8) * pitch + blockIdx.y * kColumns + i / 4 * 8 + lane % 4 * 2 + i % 2] = d[i];
}

extern "C" __global__ void __launch_bounds__(160, 1)
    gemm_cluster(const __grid_constant__ ptx::TensorMap a, const __grid_constant__ ptx::TensorMap b, float* c,
                 int depth, int pitch, int planted) {
#ifdef SMSCOPE_EMULATED
  const int bug = planted;
#else
  constexpr int bug = NONE;  // a branch between wgmma and wait would make ptxas serialise them (C7514)
#endif
  const Rooms at;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      ptx::mbarrier_init(at.full + 8 * stage, 1);
      ptx::mbarrier_init(at.empty + 8 * stage, kWarps * (bug == ARRIVALS_OF_ONE_BLOCK ? 1 : kBlocks));
    }
    if (bug != MISSING_INIT_FENCE && bug != RELEASE_FOR_INIT_FENCE && bug != INIT_FENCE_AFTER_BARRIER)
      ptx::fence_mbarrier_init();
  }
  // Relaxed: the fence has published the inits, and nothing else was written.
  if (bug != MISSING_INIT_BARRIER && bug != BLOCK_BARRIER_FOR_INIT) {
    if (bug == RELEASE_FOR_INIT_FENCE)
      ptx::cluster_arrive();
    else
      ptx::cluster_arrive_relaxed();
    ptx::cluster_wait();
  }
  if (bug == BLOCK_BARRIER_FOR_INIT) __syncthreads();
  if (bug == INIT_FENCE_AFTER_BARRIER && threadIdx.x == 0) ptx::fence_mbarrier_init();

  if (threadIdx.x == kWarps * 32)
    produce(at, &a, &b, depth / kDepth, bug);
  else if (threadIdx.x < kWarps * 32)
    consume(at, c, depth / kDepth, pitch, bug);
  // The peer's last releases arrive here.
  if (bug != MISSING_LAST_BARRIER) ptx::cluster_sync();
}
