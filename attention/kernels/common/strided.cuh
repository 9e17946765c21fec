// What kernels have alike that give each tile of rows a block, and read rows by address and strides (launch/strided.py).
#pragma once
#include "fragment.cuh"
#include "work.cuh"

// The block's tile, from a shuffle that the compiler does not move: what is cheap to compute again need not occupy
// registers through the main loop.
__device__ __forceinline__ Work work_again(const Launch& launch) {
  return work_of(launch, divided(launch, __shfl_sync(~0u, static_cast<int>(blockIdx.x), 0)));
}

// Where a head of this work's sequence begins, or of the packed tensor.
__device__ __forceinline__ const unsigned short* head_of(const void* base, const Work& work, int head,
                                                         long long batch_step, long long head_step) {
  return static_cast<const unsigned short*>(base) + work.plane * batch_step + head * head_step;
}

template <class Fragment>
__device__ __forceinline__ void zero(Fragment& sums) {
#pragma unroll
  for (int i = 0; i < Fragment::kCount; ++i) sums[i] = 0.f;
}
