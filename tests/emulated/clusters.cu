// What blocks of a cluster do with each other's shared memory, one way a kernel. Every block gives its words to the
// next one in rank, whose block of `out` they become; multicasts bring every block's words to all.
#include "ptx/cluster.cuh"
#include "ptx/elect.cuh"
#include "ptx/memory.cuh"
#include "ptx/multicast.cuh"

constexpr int kWords = 256, kBytes = 4 * kWords, kMostBlocks = 8;

struct Rooms {
  unsigned mine = ptx::shared_base(), theirs = mine + kBytes, bar = theirs + kMostBlocks * kBytes;
};

__device__ __forceinline__ unsigned next_rank() { return (ptx::cluster_rank() + 1) % ptx::cluster_size(); }

// One arrival, and whatever bytes are expected with it, known to the whole cluster.
__device__ __forceinline__ void prepare(unsigned bar, unsigned bytes) {
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(bar, 1);
    ptx::fence_mbarrier_init();
    if (bytes) ptx::mbarrier_arrive_expect(bar, bytes);
  }
  ptx::cluster_sync();
}

__device__ __forceinline__ void show(unsigned* out, unsigned from, int words) {
  for (int i = threadIdx.x; i < words; i += blockDim.x) out[blockIdx.x * words + i] = ptx::load_shared(from + 4 * i);
}

__device__ __forceinline__ void fill(unsigned to, const unsigned* in) {
  for (int i = threadIdx.x; i < kWords; i += blockDim.x) ptx::store_shared(to + 4 * i, in[blockIdx.x * kWords + i]);
}

// Ordinary stores, published by a releasing arrival.
extern "C" __global__ void by_stores(const unsigned* in, unsigned* out) {
  const Rooms at;
  prepare(at.bar, 0);
  const unsigned there = ptx::map_shared(at.theirs, next_rank()), *from = in + blockIdx.x * kWords;
  if (threadIdx.x < 32) {
    for (int i = threadIdx.x; i < kWords / 8; i += 32) {
      const unsigned four[] = {from[4 * i], from[4 * i + 1], from[4 * i + 2], from[4 * i + 3]};
      ptx::store_cluster4(there + 16 * i, four);
    }
    for (int i = kWords / 2 + threadIdx.x; i < kWords; i += 32) ptx::store_cluster(there + 4 * i, from[i]);
    __syncwarp();
    if (ptx::elect_one()) ptx::mbarrier_arrive_cluster(ptx::map_shared(at.bar, next_rank()));
  }
  ptx::mbarrier_wait_cluster(at.bar, 0);
  show(out, at.theirs, kWords);
  ptx::cluster_sync();
}

// The reader fetches.
extern "C" __global__ void by_loads(const unsigned* in, unsigned* out) {
  const Rooms at;
  fill(at.mine, in);
  ptx::cluster_sync();
  const unsigned there =
      ptx::map_shared(at.mine, (ptx::cluster_rank() + ptx::cluster_size() - 1) % ptx::cluster_size());
  unsigned* to = out + blockIdx.x * kWords;
  for (int i = threadIdx.x; i < kWords / 8; i += blockDim.x) {
    unsigned four[4];
    ptx::load_cluster4(four, there + 16 * i);
    for (int j = 0; j < 4; ++j) to[4 * i + j] = four[j];
  }
  for (int i = kWords / 2 + threadIdx.x; i < kWords; i += blockDim.x) to[i] = ptx::load_cluster(there + 4 * i);
  ptx::cluster_sync();
}

// Stores that an mbarrier counts.
extern "C" __global__ void by_async_stores(const unsigned* in, unsigned* out) {
  const Rooms at;
  prepare(at.bar, kBytes);
  const unsigned there = ptx::map_shared(at.theirs, next_rank()), bar = ptx::map_shared(at.bar, next_rank());
  const unsigned* from = in + blockIdx.x * kWords;
  for (int i = threadIdx.x; i < kWords / 8; i += blockDim.x) {
    const unsigned four[] = {from[4 * i], from[4 * i + 1], from[4 * i + 2], from[4 * i + 3]};
    ptx::store_async4(there + 16 * i, four, bar);
  }
  for (int i = kWords / 2 + threadIdx.x; i < kWords; i += blockDim.x) ptx::store_async(there + 4 * i, from[i], bar);
  ptx::mbarrier_wait_cluster(at.bar, 0);
  show(out, at.theirs, kWords);
  ptx::cluster_sync();
}

// One bulk copy; the sender says at the receiver's mbarrier how much will come.
extern "C" __global__ void by_bulk_copy(const unsigned* in, unsigned* out) {
  const Rooms at;
  prepare(at.bar, 0);
  fill(at.mine, in);
  ptx::fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned bar = ptx::map_shared(at.bar, next_rank());
    ptx::mbarrier_arrive_expect_remote(bar, kBytes);
    ptx::bulk_send(ptx::map_shared(at.theirs, next_rank()), at.mine, kBytes, bar);
  }
  ptx::mbarrier_wait_cluster(at.bar, 0);
  show(out, at.theirs, kWords);
  ptx::cluster_sync();
}

extern "C" __global__ void by_bulk_multicast(const unsigned* in, unsigned* out) {
  const Rooms at;
  const unsigned blocks = ptx::cluster_size(), rank = ptx::cluster_rank();
  prepare(at.bar, blocks * kBytes);
  if (threadIdx.x == 0)
    ptx::bulk_load_multicast(at.theirs + rank * kBytes, in + blockIdx.x * kWords, kBytes, at.bar, (1 << blocks) - 1);
  ptx::mbarrier_wait(at.bar, 0);
  show(out, at.theirs, blocks * kWords);
  ptx::cluster_sync();
}

#ifdef COORDINATES
// The box at a block's number in the outermost dimension, COORDINATES before it.
extern "C" __global__ void by_tensor_multicast(const __grid_constant__ ptx::TensorMap in, unsigned* out) {
  const Rooms at;
  const unsigned blocks = ptx::cluster_size(), rank = ptx::cluster_rank();
  prepare(at.bar, blocks * kBytes);
  if (threadIdx.x == 0) {
    const int number = blockIdx.x;
    ptx::tensor_load_multicast(at.theirs + rank * kBytes, &in, at.bar, (1 << blocks) - 1, COORDINATES);
  }
  ptx::mbarrier_wait(at.bar, 0);
  show(out, at.theirs, blocks * kWords);
  ptx::cluster_sync();
}
#endif

// A histogram whose bins are shared out: bin b lies in the block of rank b modulo the cluster.
enum Bug { NONE, MISSING_CLEAR_BARRIER, MISSING_COUNT_BARRIER, BLOCK_BARRIERS, ADDITION_IN_THREE_STEPS, WRONG_OWNER };

extern "C" __global__ void histogram(const unsigned* values, unsigned* counts, int each, int bins, int planted) {
#ifdef SMSCOPE_EMULATED
  const int bug = planted;
#else
  constexpr int bug = NONE;
#endif
  const unsigned at = ptx::shared_base(), blocks = ptx::cluster_size(), own = bins / blocks;
  for (int i = threadIdx.x; i < own; i += blockDim.x) ptx::store_shared(at + 4 * i, 0);
  if (bug == BLOCK_BARRIERS)
    __syncthreads();
  else if (bug != MISSING_CLEAR_BARRIER)
    ptx::cluster_sync();
  for (int i = threadIdx.x; i < each; i += blockDim.x) {
    const unsigned bin = values[blockIdx.x * each + i];
    const unsigned owner = (bin + (bug == WRONG_OWNER)) % blocks, there = ptx::map_shared(at + bin / blocks * 4, owner);
    if (bug == ADDITION_IN_THREE_STEPS)
      ptx::store_cluster(there, ptx::load_cluster(there) + 1);
    else
      ptx::add_cluster(there, 1);
  }
  if (bug == BLOCK_BARRIERS)
    __syncthreads();
  else if (bug != MISSING_COUNT_BARRIER)
    ptx::cluster_sync();
  for (int i = threadIdx.x; i < own; i += blockDim.x)
    atomicAdd(&counts[i * blocks + ptx::cluster_rank()], ptx::load_shared(at + 4 * i));
}
