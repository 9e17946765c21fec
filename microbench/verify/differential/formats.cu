// Every number format by its wrapper, fragments as they are: global memory holds, lane after lane, the registers that
// go in and come out. A build says which wrappers a build has (WRAPPERS, a row of TRY), and a launch which of them it
// runs.
#include "ptx/memory.cuh"

template <unsigned Count, class T>
__device__ __forceinline__ void take(T (&registers)[Count], const T* from) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned i = 0; i < Count; ++i) registers[i] = from[thread * Count + i];
}

template <unsigned Count, class T>
__device__ __forceinline__ void give(T* to, const T (&registers)[Count]) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned i = 0; i < Count; ++i) to[thread * Count + i] = registers[i];
}

#ifdef MMA_SYNC
#include "ptx/mma_sync.cuh"
#include "ptx/mma_sync_8bit.cuh"

#define TRY(NUMBER, NAME, A_WORDS, B_WORDS, D_TYPE, D_WORDS) \
  if (which == NUMBER) {                                     \
    unsigned fa[A_WORDS], fb[B_WORDS];                       \
    D_TYPE fd[D_WORDS];                                      \
    take(fa, a);                                             \
    take(fb, b);                                             \
    take(fd, static_cast<const D_TYPE*>(d));                 \
    ptx::NAME(fd, fa, fb);                                   \
    give(static_cast<D_TYPE*>(d), fd);                       \
  }
extern "C" __global__ void mma(int which, const unsigned* a, const unsigned* b, void* d){WRAPPERS}
#endif

#ifdef WGMMA
#include "ptx/wgmma_fp8.cuh"
#include "ptx/wgmma_int8.cuh"
#include "ptx/wgmma_tf32.cuh"

__device__ __forceinline__ void fill_shared(unsigned address, const unsigned* from, int words) {
  for (int i = threadIdx.x; i < words; i += blockDim.x)
    ptx::store_shared(address + 4 * i, from[blockIdx.x * words + i]);
}

// d += a * b of one slice, with a from shared memory or, where `registers`, from there.
#define TRY(NUMBER, NAME, D_TYPE, COLUMNS)   \
  if (which == NUMBER) {                     \
    D_TYPE fd[COLUMNS / 2];                  \
    unsigned fa[4];                          \
    take(fd, static_cast<const D_TYPE*>(d)); \
    take(fa, a_registers);                   \
    ptx::wgmma_fence();                      \
    if (registers)                           \
      ptx::wgmma_##NAME##_rs(fd, fa, db, 1); \
    else                                     \
      ptx::wgmma_##NAME##_ss(fd, da, db, 1); \
    ptx::wgmma_commit();                     \
    ptx::wgmma_wait<0>();                    \
    give(static_cast<D_TYPE*>(d), fd);       \
  }
// a and b: images of shared memory, then the strides of their descriptors.
extern "C" __global__ void __launch_bounds__(128, 1)
    wgmma(int which, int registers, int swizzle, const unsigned* a, int a_words, int a_leading, int a_stride,
          const unsigned* b, int b_words, int b_leading, int b_stride, const unsigned* a_registers, void* d) {
  const unsigned a_tile = ptx::shared_base(), b_tile = a_tile + 32768;
  fill_shared(a_tile, a, a_words);
  fill_shared(b_tile, b, b_words);
  ptx::fence_proxy_async();
  __syncthreads();
  const unsigned long long da = ptx::matrix_descriptor(a_tile, a_leading, a_stride, swizzle);
  const unsigned long long db = ptx::matrix_descriptor(b_tile, b_leading, b_stride, swizzle);
  WRAPPERS
}
#endif
