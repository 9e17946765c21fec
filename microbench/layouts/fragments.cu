// A tensor instruction as a black box: block b gives it the fragments number b, as they lie in the lanes' registers,
// and hands the accumulators back. Nothing here knows a layout; derive.py finds it from what comes out.
//
// Words lie lane after lane: register i of thread t of block b is word (b * blockDim.x + t) * Count + i.
#include "ptx/memory.cuh"

template <unsigned Count, class T>
__device__ __forceinline__ void take(T (&registers)[Count], const T* from) {
  for (unsigned i = 0; i < Count; ++i) registers[i] = from[(blockIdx.x * blockDim.x + threadIdx.x) * Count + i];
}

template <unsigned Count, class T>
__device__ __forceinline__ void give(T* to, const T (&registers)[Count]) {
  for (unsigned i = 0; i < Count; ++i) to[(blockIdx.x * blockDim.x + threadIdx.x) * Count + i] = registers[i];
}

#ifdef VOLTA
#include "ptx/mma_sm70.cuh"
extern "C" __global__ void product(const unsigned* a, const unsigned* b, float* d, int a_column, int b_row) {
  using ptx::Order;
  unsigned fa[2], fb[2];
  float fd[8] = {};
  take(fa, a);
  take(fb, b);
  if (a_column && b_row)
    ptx::mma_m8n8k4<Order::col, Order::row>(fd, fa, fb);
  else if (a_column)
    ptx::mma_m8n8k4<Order::col, Order::col>(fd, fa, fb);
  else if (b_row)
    ptx::mma_m8n8k4<Order::row, Order::row>(fd, fa, fb);
  else
    ptx::mma_m8n8k4<Order::row, Order::col>(fd, fa, fb);
  give(d, fd);
}
#endif

#ifdef AMPERE
#include "ptx/mma_sync.cuh"
extern "C" __global__ void product(const unsigned* a, const unsigned* b, float* d) {
  unsigned fa[4], fb[2];
  float fd[4] = {};
  take(fa, a);
  take(fb, b);
  ptx::mma_m16n8k16_f16(fd, fa, fb);
  give(d, fd);
}
#endif

#ifdef LOADED
#include "ptx/ldmatrix.cuh"
// Lane l owns row l of the image, 16 bytes, and gives its address.
extern "C" __global__ void load(const unsigned* image, unsigned* d) {
  const unsigned mine = ptx::shared_base() + 16 * threadIdx.x;
  unsigned row[4], fd[4];
  take(row, image);
  for (unsigned i = 0; i < 4; ++i) ptx::store_shared(mine + 4 * i, row[i]);
  __syncthreads();
  ptx::ldmatrix(fd, mine);
  give(d, fd);
}
#endif

#ifdef HOPPER
#include "ptx/wgmma.cuh"
// b: an image of shared memory, COLUMNS rows of 128 bytes, for each block. slice: which 16 of the 64 k it multiplies.
extern "C" __global__ void __launch_bounds__(128, 1)
    product(const unsigned* a, const unsigned* b, float* d, int slice) {
  const unsigned tile = ptx::shared_base(), words = 32 * COLUMNS;
  for (unsigned i = threadIdx.x; i < words; i += blockDim.x) ptx::store_shared(tile + 4 * i, b[blockIdx.x * words + i]);
  ptx::fence_proxy_async();
  __syncthreads();
  unsigned fa[4];
  float fd[COLUMNS / 2] = {};
  take(fa, a);
  ptx::wgmma_fence();
  ptx::wgmma_f16_rs(fd, fa, ptx::wgmma_descriptor(tile) + ptx::wgmma_slice(slice), 1);
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
  give(d, fd);
}
#endif

#ifdef BLACKWELL
#include "ptx/tcgen05.cuh"
// a, b: images of K-major tiles without swizzle, 128 and COLUMNS rows of 16 elements, for each block.
extern "C" __global__ void __launch_bounds__(128) product(const unsigned* a, const unsigned* b, unsigned* d) {
  const unsigned a_tile = ptx::shared_base(), b_tile = a_tile + 4096, bar = b_tile + 32 * COLUMNS, where = bar + 8;
  const unsigned warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
  for (unsigned i = threadIdx.x; i < 1024; i += 128) ptx::store_shared(a_tile + 4 * i, a[blockIdx.x * 1024 + i]);
  for (unsigned i = threadIdx.x; i < 8 * COLUMNS; i += 128)
    ptx::store_shared(b_tile + 4 * i, b[blockIdx.x * 8 * COLUMNS + i]);
  ptx::fence_proxy_async();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(bar, 1);
    ptx::fence_mbarrier_init();
  }
  if (warp == 0) ptx::tcgen05_alloc(where, 32);
  ptx::tcgen05_fence_before();
  __syncthreads();
  ptx::tcgen05_fence_after();
  const unsigned memory = ptx::load_shared(where);
  if (threadIdx.x == 0) {
    const unsigned kind = ptx::tcgen05_instruction(ptx::Operand::f16, ptx::Operand::f16, 128, COLUMNS);
    ptx::tcgen05_mma_f16_ss(memory, ptx::tcgen05_matrix(a_tile, 128, 256, 0), ptx::tcgen05_matrix(b_tile, 128, 256, 0),
                            kind, 0);
    ptx::tcgen05_commit(bar);
  }
  ptx::mbarrier_wait(bar, 0);
  ptx::tcgen05_fence_after();
  unsigned fd[COLUMNS];
  ptx::tcgen05_ld_32x32b(fd, memory + (warp * 32 << 16));
  ptx::tcgen05_wait_ld();
  give(d, fd);
  ptx::tcgen05_fence_before();
  __syncthreads();
  if (warp == 0) ptx::tcgen05_dealloc(memory, 32);
}

// One warp of the block reads one quarter of the lanes.
extern "C" __global__ void reach(int reader, int quarter, unsigned* d) {
  const unsigned where = ptx::shared_base(), warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
  if (warp == 0) ptx::tcgen05_alloc(where, 32);
  ptx::tcgen05_fence_before();
  __syncthreads();
  ptx::tcgen05_fence_after();
  const unsigned memory = ptx::load_shared(where);
  unsigned fd[1] = {};
  if (warp == static_cast<unsigned>(reader)) {
    ptx::tcgen05_ld_32x32b(fd, memory + (quarter * 32 << 16));
    ptx::tcgen05_wait_ld();
  }
  give(d, fd);
  ptx::tcgen05_fence_before();
  __syncthreads();
  if (warp == 0) ptx::tcgen05_dealloc(memory, 32);
}
#endif
