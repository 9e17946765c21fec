// One thread copies eight tiles of shared memory to eight places of tensor memory, again and again. Of a pair one thread
// asks for both blocks, each of which copies its own tiles.
#include "ptx/elect.cuh"
#include "tensor_memory.cuh"
#include "timing.cuh"

constexpr int kPerTrip = 8;
constexpr unsigned kTileBytes = ROWS * ROW_BYTES, kTileColumns = ROW_BYTES / 4;

// Rows of a tile without a swizzle: cores of eight rows of 16 bytes, those of the same rows one after another.
__device__ __forceinline__ ptx::u64 tile_at(unsigned address) {
  return ptx::tcgen05_matrix(address, 128, 8 * ROW_BYTES, 0);
}

extern "C" __global__ void __cluster_dims__(GROUP, 1, 1) __launch_bounds__(128, 1)
    tmem_copy_bandwidth(const unsigned* in, int trips, unsigned* out, long long* clocks) {
  const unsigned base = (ptx::shared_base() + 1023) & ~1023u;
  for (unsigned i = threadIdx.x; i < kPerTrip * kTileBytes / 4; i += 128) ptx::store_shared(base + 4 * i, in[i]);
  ptx::fence_proxy_async();
  const TensorMemory opened = open_tensor_memory<GROUP>(base + kPerTrip * kTileBytes);
  const unsigned rank = GROUP == 2 ? __shfl_sync(~0u, ptx::cluster_rank(), 0) : 0;
  if (TensorMemory::warp() == 0) {
    const long long start = ptx::clock64();
    // In this order: ptxas elects a lane anew for each instruction behind another branch than the election's.
    if (ptx::elect_one() && rank == 0) {
      int t = 0;
#pragma unroll 1
      do {
#pragma unroll
        for (int i = 0; i < kPerTrip; ++i)
          ptx::COPY<GROUP>(opened.memory + i * kTileColumns, tile_at(base + i * kTileBytes));
      } while (++t < trips);
#if GROUP == 2
      ptx::tcgen05_commit_multicast<2>(opened.bar(), 3);
#else
      ptx::tcgen05_commit(opened.bar());
#endif
    }
    __syncwarp();
    ptx::mbarrier_wait(opened.bar(), 0);
    const long long end = ptx::clock64();
    report(clocks, start, end);
  }
  __syncthreads();
  ptx::mbarrier_wait(opened.bar(), 0);
  ptx::tcgen05_fence_after();
  unsigned sum = 0;
#pragma unroll 1
  for (unsigned column = 0; column < kPerTrip * kTileColumns; ++column) {
    unsigned word[1];
    ptx::tcgen05_ld_32x32b(word, opened.mine() + column);
    ptx::tcgen05_wait_ld();
    sum = sum * 3 + word[0];
  }
  out[blockIdx.x * 128 + threadIdx.x] = sum;
  opened.close<GROUP>();
}
