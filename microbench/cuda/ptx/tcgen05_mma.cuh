// tcgen05.mma and tcgen05.cp (sm_100a): one thread asks, the tensor cores multiply. D (M x N, f32 or s32) lies in tensor
// memory, row i in lane i (M = 64: in lane i / 16 * 32 + i % 16), column j in column j. B comes from shared memory, A
// from shared memory (ss) or from tensor memory (ts): its rows in the lanes of D, as many neighbours in k to a column as
// a word holds.
//
// With a pair of blocks (Group 2) one thread asks for both. Each block has half of the rows of A and of D and half of
// the columns of B, the lower halves in the block of even rank, at the same addresses. M = 256: 128 rows a block, as
// above. M = 128: 64 rows a block, row i in lane i; lanes 64 to 127 hold the second half of the columns of D.
//
// Both instructions are asynchronous. Those of one thread execute in the order of their issue; for anybody else, and
// for tcgen05.ld, they are done where an mbarrier says so that a tcgen05_commit arrived at:
//   issuer   tcgen05_mma_f16_ss(d, ...); tcgen05_commit(bar);
//   reader   mbarrier_wait(bar, phase); tcgen05_fence_after(); tcgen05_ld_32x32b(...)
// Around any other barrier both fences are needed: tcgen05_fence_before by whoever arrives, after what it did to tensor
// memory is complete; tcgen05_fence_after by whoever waited, before it touches tensor memory (PTX ISA, 'Memory
// consistency model for 5th generation of tensor core operations'). Shared memory that ordinary stores wrote is read
// through the async proxy: fence_proxy_async by the writer.
#pragma once
#include "ptx/barrier.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/tcgen05_descriptor.cuh"

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/tcgen05_mma.hpp"
#else
#include "ptx/tcgen05_group.cuh"

namespace ptx {

__device__ __forceinline__ void tcgen05_fence_before() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}

__device__ __forceinline__ void tcgen05_fence_after() {
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

// d = a * b, plus d where `accumulate` is not 0. `instruction` is tcgen05_instruction(...), a and b
// tcgen05_matrix(...); a of _ts is an address of tensor memory.
#define PTX_TCGEN05_PRODUCT(KIND, TEXT, CONSTRAINT)                                                                \
  PTX_TCGEN05("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma", ".kind::" KIND " [%0], " TEXT ", %2, %3, p; }", \
              "r"(d), CONSTRAINT(a), "l"(b), "r"(instruction), "r"(accumulate));
#define PTX_TCGEN05_MMA(NAME, KIND)                                                                               \
  template <int Group = 1>                                                                                        \
  __device__ __forceinline__ void tcgen05_mma_##NAME##_ss(unsigned d, unsigned long long a, unsigned long long b, \
                                                          unsigned instruction, int accumulate) {                 \
    PTX_TCGEN05_PRODUCT(KIND, "%1", "l")                                                                          \
  }                                                                                                               \
  template <int Group = 1>                                                                                        \
  __device__ __forceinline__ void tcgen05_mma_##NAME##_ts(unsigned d, unsigned a, unsigned long long b,           \
                                                          unsigned instruction, int accumulate) {                 \
    PTX_TCGEN05_PRODUCT(KIND, "[%1]", "r")                                                                        \
  }

PTX_TCGEN05_MMA(f16, "f16")    // f16 and bf16
PTX_TCGEN05_MMA(f8, "f8f6f4")  // e4m3, e5m2, e2m3, e3m2, padded_e2m1
PTX_TCGEN05_MMA(tf32, "tf32")
PTX_TCGEN05_MMA(i8, "i8")  // s8 and u8, sums s32; sm_103a has none
#undef PTX_TCGEN05_MMA
#undef PTX_TCGEN05_PRODUCT

// The same of A times its scales by B times its scales: the factors of `scale_a` and `scale_b`, addresses of tensor
// memory, for each 32 neighbours in k, of nvf4 16. `instruction` is tcgen05_scaled_instruction(...). With a pair each
// block has the scales of its own rows of A, and those of all columns of B.
#define PTX_TCGEN05_SCALED_PRODUCT(KIND, TEXT, CONSTRAINT)                                               \
  PTX_TCGEN05("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma",                                       \
              ".kind::" KIND " [%0], " TEXT ", %2, %3, [%5], [%6], p; }", "r"(d), CONSTRAINT(a), "l"(b), \
              "r"(instruction), "r"(accumulate), "r"(scale_a), "r"(scale_b));
#define PTX_TCGEN05_SCALED_MMA(NAME, KIND)                                                                          \
  template <int Group = 1>                                                                                          \
  __device__ __forceinline__ void tcgen05_mma_##NAME##_ss(unsigned d, unsigned long long a, unsigned long long b,   \
                                                          unsigned instruction, unsigned scale_a, unsigned scale_b, \
                                                          int accumulate) {                                         \
    PTX_TCGEN05_SCALED_PRODUCT(KIND, "%1", "l")                                                                     \
  }                                                                                                                 \
  template <int Group = 1>                                                                                          \
  __device__ __forceinline__ void tcgen05_mma_##NAME##_ts(unsigned d, unsigned a, unsigned long long b,             \
                                                          unsigned instruction, unsigned scale_a, unsigned scale_b, \
                                                          int accumulate) {                                         \
    PTX_TCGEN05_SCALED_PRODUCT(KIND, "[%1]", "r")                                                                   \
  }

PTX_TCGEN05_SCALED_MMA(mxf8, "mxf8f6f4.block_scale.scale_vec::1X")  // the types of f8, scales ue8m0
PTX_TCGEN05_SCALED_MMA(mxf4, "mxf4.block_scale.scale_vec::2X")      // e2m1, two to a byte, scales ue8m0
PTX_TCGEN05_SCALED_MMA(nvf4, "mxf4nvf4.block_scale.scale_vec::4X")  // e2m1, scales ue4m3 or ue8m0
#undef PTX_TCGEN05_SCALED_MMA
#undef PTX_TCGEN05_SCALED_PRODUCT

// Copy a K-major matrix of shared memory to tensor memory, row i to lane i from column `address` on:
//   128x256b, 128x128b       32 or 16 bytes a row: eight or four columns
//   64x128b_02_13, _01_23    rows 0-31 to two quarters of the lanes, as named, rows 32-63 to the other two
//   32x128b                  the rows to all four quarters
#define PTX_TCGEN05_CP(NAME, SHAPE)                                                              \
  template <int Group = 1>                                                                       \
  __device__ __forceinline__ void tcgen05_cp_##NAME(unsigned address, unsigned long long from) { \
    PTX_TCGEN05("tcgen05.cp", "." SHAPE " [%0], %1;", "r"(address), "l"(from));                  \
  }
PTX_TCGEN05_CP(128x256b, "128x256b")
PTX_TCGEN05_CP(128x128b, "128x128b")
PTX_TCGEN05_CP(64x128b_02_13, "64x128b.warpx2::02_13")
PTX_TCGEN05_CP(64x128b_01_23, "64x128b.warpx2::01_23")
PTX_TCGEN05_CP(32x128b, "32x128b.warpx4")
#undef PTX_TCGEN05_CP

// One arrival at the mbarrier, once every mma and cp that this thread has issued so far is complete.
template <int Group = 1>
__device__ __forceinline__ void tcgen05_commit(unsigned bar) {
  PTX_TCGEN05("tcgen05.commit", ".mbarrier::arrive::one.shared::cluster.b64 [%0];", "r"(bar));
}

// The same at the mbarrier at this offset in every block of the cluster whose rank is a set bit of `ranks`.
template <int Group = 1>
__device__ __forceinline__ void tcgen05_commit_multicast(unsigned bar, unsigned short ranks) {
  PTX_TCGEN05("tcgen05.commit", ".mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;", "r"(bar),
              "h"(ranks));
}

}  // namespace ptx

#endif
