// One thread multiplies twice into the same accumulators, which lie in tensor memory: no register holds any of the
// three matrices. Every warp then reads the 32 lanes that it may touch (PTX ISA, 'Tensorcore 5th Generation').
#include "ptx/mbarrier.cuh"
#include "ptx/memory.cuh"

// 128-byte swizzle as in wgmma.cuh, but the layout is bits 61 to 63 (2 = 128 bytes), and bit 46 is the version.
__device__ unsigned long long descriptor(unsigned address) {
  return 2ull << 61 | 1ull << 46 | (1024ull >> 4) << 32 | 1ull << 16 | (address & 0x3FFFF) >> 4;
}

__device__ void multiply(unsigned tensor_memory, unsigned long long a, unsigned long long b, int accumulate) {
  const unsigned m = 128, n = 16, f32 = 1;  // of the instruction descriptor; types of A and B: 0 is f16
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }" ::"r"(
                   tensor_memory),
               "l"(a), "l"(b), "r"(f32 << 4 | (n >> 3) << 17 | (m >> 4) << 24), "r"(accumulate)
               : "memory");
}

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
  if (warp == 0)
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" ::"r"(where) : "memory");
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  const unsigned tensor_memory = ptx::load_shared(where);
  if (warp == 0 && elect()) {
    multiply(tensor_memory, descriptor(a), descriptor(b), 0);
    multiply(tensor_memory, descriptor(a) + (32 >> 4), descriptor(b) + (32 >> 4), 1);
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(bar) : "memory");
  }
  ptx::mbarrier_wait(bar, 0);
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  unsigned fd[4];
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(fd[0]), "=r"(fd[1]), "=r"(fd[2]), "=r"(fd[3])
               : "r"(tensor_memory + (warp * 32 << 16)));
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
  for (unsigned i = 0; i < 4; ++i) d[128 * i + threadIdx.x] = fd[i];
  __syncthreads();
  if (warp == 0) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" ::"r"(tensor_memory));
}
