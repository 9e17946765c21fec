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
