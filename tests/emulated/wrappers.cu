// One wrapper a kernel, fragments as they are: global memory holds, lane after lane, the registers that go in and come
// out. The tests lay matrices out themselves. One group of kernels for each family, chosen by a define.
#include "ptx/memory.cuh"

template <unsigned Count, class T>
__device__ __forceinline__ void take(T (&registers)[Count], const T* from) {
  for (unsigned i = 0; i < Count; ++i) registers[i] = from[threadIdx.x * Count + i];
}

template <unsigned Count, class T>
__device__ __forceinline__ void give(T* to, const T (&registers)[Count]) {
  for (unsigned i = 0; i < Count; ++i) to[threadIdx.x * Count + i] = registers[i];
}

__device__ __forceinline__ void fill_shared(unsigned address, const unsigned* from, int words) {
  for (int i = threadIdx.x; i < words; i += blockDim.x) ptx::store_shared(address + 4 * i, from[i]);
}

__device__ __forceinline__ void read_shared(unsigned* to, unsigned address, int words) {
  for (int i = threadIdx.x; i < words; i += blockDim.x) to[i] = ptx::load_shared(address + 4 * i);
}

#ifdef MMA
#include "ptx/mma_sm70.cuh"
#include "ptx/mma_sync.cuh"
extern "C" __global__ void mma(const unsigned* a, const unsigned* b, D_TYPE* d) {
  unsigned fa[A_WORDS], fb[B_WORDS];
  D_TYPE fd[D_WORDS];
  take(fa, a);
  take(fb, b);
  take(fd, d);
  ptx::MMA(fd, fa, fb);
  give(d, fd);
}
#endif

#ifdef MATRICES
#include "ptx/ldmatrix.cuh"
// rows: a byte offset into shared memory for each lane.
extern "C" __global__ void load_matrices(const unsigned* image, const unsigned* rows, unsigned* d) {
  fill_shared(ptx::shared_base(), image, 256);
  __syncthreads();
  unsigned plain[MATRICES], transposed[MATRICES];
  ptx::ldmatrix(plain, ptx::shared_base() + rows[threadIdx.x]);
  ptx::ldmatrix_trans(transposed, ptx::shared_base() + rows[threadIdx.x]);
  give(d, plain);
  give(d + 32 * MATRICES, transposed);
}

#if defined(SMSCOPE_EMULATED) || __CUDA_ARCH__ >= 900
extern "C" __global__ void store_matrices(const unsigned* s, const unsigned* rows, unsigned* plain, unsigned* trans) {
  unsigned fragment[MATRICES];
  take(fragment, s);
  ptx::stmatrix(ptx::shared_base() + rows[threadIdx.x], fragment);
  __syncthreads();
  read_shared(plain, ptx::shared_base(), 32 * MATRICES);
  __syncthreads();
  ptx::stmatrix_trans(ptx::shared_base() + rows[threadIdx.x], fragment);
  __syncthreads();
  read_shared(trans, ptx::shared_base(), 32 * MATRICES);
}
#endif
#endif

#ifdef COORDINATES
#include "ptx/tma.cuh"
// Load a box, show its image in shared memory, store it through a second map, and add it through a third, at the
// same place or at STORED.
#ifndef STORED
#define STORED COORDINATES
#endif
extern "C" __global__ void copy_box(const __grid_constant__ ptx::TensorMap from,
                                    const __grid_constant__ ptx::TensorMap to,
                                    const __grid_constant__ ptx::TensorMap sum, unsigned* image, int words) {
  const unsigned box = ptx::shared_base(), bar = box + 32768;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(bar, 1);
    ptx::fence_mbarrier_init();
    ptx::mbarrier_arrive_expect(bar, words * 4);
    ptx::tensor_load(box, &from, bar, COORDINATES);
  }
  __syncthreads();
  ptx::mbarrier_wait(bar, 0);
  read_shared(image, box, words);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::tensor_store(&to, box, STORED);
    ptx::tensor_add(&sum, box, STORED);
    ptx::bulk_commit();
    ptx::bulk_wait<0>();
  }
}

extern "C" __global__ void copy_bytes(const unsigned* from, unsigned* to, int words) {
  const unsigned room = ptx::shared_base(), bar = room + 32768;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(bar, 1);
    ptx::fence_mbarrier_init();
    ptx::mbarrier_arrive_expect(bar, words * 4);
    ptx::bulk_load(room, from, words * 4, bar);
    while (!ptx::mbarrier_test(bar, 0)) {
    }
    ptx::bulk_store(to, room, words * 4);
    ptx::bulk_commit();
    ptx::bulk_wait_read<0>();
  }
}
#endif

#ifdef WGMMA
#include "ptx/wgmma.cuh"
// d = a * b of one k16; a and b as images of shared memory, and the strides of their descriptors.
extern "C" __global__ void __launch_bounds__(128, 1)
    wgmma(const unsigned* a, int a_words, int a_leading, int a_stride, const unsigned* b, int b_words, int b_leading,
          int b_stride, const unsigned* a_registers, float* d) {
  const unsigned a_tile = ptx::shared_base(), b_tile = a_tile + 32768;
  fill_shared(a_tile, a, a_words);
  fill_shared(b_tile, b, b_words);
  ptx::fence_proxy_async();
  __syncthreads();
  float fd[COLUMNS / 2];
  unsigned fa[4];
  take(fd, static_cast<const float*>(d));
  take(fa, a_registers);
  const unsigned long long db = ptx::matrix_descriptor(b_tile, b_leading, b_stride, SWIZZLE);
  ptx::wgmma_fence();
#ifdef FROM_REGISTERS
  ptx::WGMMA<ptx::Major::B_MAJOR>(fd, fa, db, 1);
#else
  const unsigned long long da = ptx::matrix_descriptor(a_tile, a_leading, a_stride, SWIZZLE);
  ptx::WGMMA<ptx::Major::A_MAJOR, ptx::Major::B_MAJOR>(fd, da, db, 1);
#endif
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
  give(d, fd);
}
#endif
