// mbarrier (sm_80; bytes and phases by parity as here: sm_90): eight bytes of shared memory that count arrivals, and
// bytes that copies bring. A phase is complete where all arrivals have come and every expected byte has landed; the
// next one begins at once. Phases alternate in parity, the first one has 0: whoever waits keeps the parity in mind.
//
//   one thread    mbarrier_init(bar, arrivals); fence_mbarrier_init();   then a barrier of the block
//   a producer    mbarrier_arrive_expect(bar, bytes); tensor_load(..., bar);
//   consumers     mbarrier_wait(bar, phase & 1);
//
// An arrival does not wait for this thread's loads, though it is a release: behind stores of other warps a load from shared
// memory came more than a microsecond later, when its room was written anew (H100, H200). What was read has to be used
// before, or fence_proxy_async stands between.
//
// In a cluster, a thread also arrives at another block's mbarrier, by its mapped address (cluster.cuh); it waits at its
// own block's only. Its inits become known to other blocks by fence_mbarrier_init and the cluster's barrier.
#pragma once

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/mbarrier.hpp"
#else

namespace ptx {

__device__ __forceinline__ void mbarrier_init(unsigned bar, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(arrivals) : "memory");
}

// The eight bytes become ordinary memory again.
__device__ __forceinline__ void mbarrier_invalidate(unsigned bar) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(bar) : "memory");
}

// Makes the inits of this thread visible to the async proxy, where copies complete.
__device__ __forceinline__ void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void mbarrier_arrive(unsigned bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}

// An arrival where `arrives`, and a word of it, whatever it says: 0 where not. ptxas puts an arrival anywhere before the
// next wait, and so behind all that the wait does not need; what needs this word stays behind the arrival.
__device__ __forceinline__ unsigned mbarrier_arrive_if(bool arrives, unsigned bar) {
  unsigned word;
  asm volatile(
      "{ .reg .pred p; .reg .b64 phase; .reg .b32 rest; setp.ne.u32 p, %2, 0; mov.b64 phase, 0; "
      "@p mbarrier.arrive.shared::cta.b64 phase, [%1]; mov.b64 {%0, rest}, phase; }"
      : "=r"(word)
      : "r"(bar), "r"(static_cast<unsigned>(arrives))
      : "memory");
  return word;
}

// Expect `bytes` more in this phase, and arrive.
__device__ __forceinline__ void mbarrier_arrive_expect(unsigned bar, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

__device__ __forceinline__ void mbarrier_expect(unsigned bar, unsigned bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

// Whether the phase of this parity is complete. May sleep for a while before it says no.
__device__ __forceinline__ bool mbarrier_test(unsigned bar, unsigned parity) {
  unsigned done;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(done)
               : "r"(bar), "r"(parity)
               : "memory");
  return done;
}

__device__ __forceinline__ void mbarrier_wait(unsigned bar, unsigned parity) {
  while (!mbarrier_test(bar, parity)) {
  }
}

// Arrivals at another block's mbarrier. The plain one says that this block's threads and tensor cores are done with a
// buffer. What an ordinary store to the peer's memory wrote is sure to be seen only where the arrival releases to the
// whole cluster (two MEMBARs) and the peer waits with mbarrier_wait_cluster (a CCTL.IVALL).
__device__ __forceinline__ void mbarrier_arrive_remote(unsigned mapped) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(mapped) : "memory");
}

__device__ __forceinline__ void mbarrier_arrive_expect_remote(unsigned mapped, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%0], %1;" ::"r"(mapped), "r"(bytes) : "memory");
}

__device__ __forceinline__ void mbarrier_arrive_cluster(unsigned mapped) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(mapped) : "memory");
}

__device__ __forceinline__ void mbarrier_wait_cluster(unsigned bar, unsigned parity) {
  unsigned done;
  do {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(bar), "r"(parity)
        : "memory");
  } while (!done);
}

}  // namespace ptx

#endif
