// One tensor copy of a 1D box in one warp: a load (LOADS), a store (STORES) or an addition (ADDS), its map a parameter
// or in global memory (IN_GLOBAL).
#include "ptx/memory.cuh"
#include "ptx/tma.cuh"

#ifdef IN_GLOBAL
#define PARAMETER const ptx::TensorMap* map
#else
#define PARAMETER const __grid_constant__ ptx::TensorMap parameter
#endif

// A load shows the box in `image`; the others take it from there.
extern "C" __global__ void trial(PARAMETER, unsigned* image, int words, int start) {
#ifndef IN_GLOBAL
  const ptx::TensorMap* map = &parameter;
#endif
  const unsigned box = ptx::shared_base(), bar = box + 1024;
#ifdef LOADS
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(bar, 1);
    ptx::fence_mbarrier_init();
    ptx::mbarrier_arrive_expect(bar, words * 4);
    ptx::tensor_load(box, map, bar, start);
  }
  __syncthreads();
  ptx::mbarrier_wait(bar, 0);
  for (int i = threadIdx.x; i < words; i += 32) image[i] = ptx::load_shared(box + 4 * i);
#else
  for (int i = threadIdx.x; i < words; i += 32) ptx::store_shared(box + 4 * i, image[i]);
  ptx::fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
#ifdef ADDS
    ptx::tensor_add(map, box, start);
#else
    ptx::tensor_store(map, box, start);
#endif
    ptx::bulk_commit();
    ptx::bulk_wait<0>();
  }
  (void)bar;
#endif
}
