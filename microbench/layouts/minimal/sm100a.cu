// One thread multiplies twice into the same accumulators, which lie in tensor memory: no register holds any of the
// three matrices. Every warp then reads the 32 lanes that it may touch.
#include "ptx/memory.cuh"
#include "ptx/tcgen05.cuh"

// One lane of a converged warp: to ptxas the branch is uniform, and the descriptors stay in uniform registers.
__device__ bool elect() {
  unsigned chosen;
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(chosen));
  return chosen;
}

extern "C" __global__ void __launch_bounds__(128) minimal(unsigned* d) {
  const unsigned a = ptx::shared_base(), b = a + 16384, bar = b + 2048, where = bar + 8;
  const unsigned warp = __shfl_sync(~0u, threadIdx.x / 32, 0);  // uniform, as ptxas then knows
  if (threadIdx.x == 0) ptx::mbarrier_init(bar, 1);
  if (warp == 0) ptx::tcgen05_alloc(where, 32);
  ptx::tcgen05_fence_before();
  __syncthreads();
  ptx::tcgen05_fence_after();
  const unsigned memory = ptx::load_shared(where);
  if (warp == 0 && elect()) {
    const unsigned kind = ptx::tcgen05_instruction(ptx::Operand::f16, ptx::Operand::f16, 128, 16);
    for (int k = 0; k < 2; ++k)
      ptx::tcgen05_mma_f16_ss(memory, ptx::tcgen05_tile(a) + ptx::tcgen05_slice(k),
                              ptx::tcgen05_tile(b) + ptx::tcgen05_slice(k), kind, k);
    ptx::tcgen05_commit(bar);
  }
  ptx::mbarrier_wait(bar, 0);
  ptx::tcgen05_fence_after();
  unsigned fd[4];
  ptx::tcgen05_ld_32x32b(fd, memory + (warp * 32 << 16));
  ptx::tcgen05_wait_ld();
  for (unsigned i = 0; i < 4; ++i) d[128 * i + threadIdx.x] = fd[i];
  __syncthreads();
  if (warp == 0) ptx::tcgen05_dealloc(memory, 32);
}
