// Bulk copies (sm_90): one thread asks, the copy engine moves. Loads complete their bytes on an mbarrier; stores are
// closed into groups and waited for by count. Both reach shared memory through the async proxy: after ordinary stores,
// fence_proxy_async (barrier.cuh).
//
// A tensor copy moves a box of a tensor of one to five dimensions. Coordinates come innermost first; where the box
// leaves the tensor, a load writes zeros and a store nothing. The innermost coordinate is a multiple of 16 bytes, and
// of a store or an addition not negative: any other is an illegal instruction on an H100. Shared memory at a multiple
// of 128 bytes; where the map has a swizzle, 16-byte chunk number bits are xored with address bits 7 and up: see
// wgmma.cuh.
#pragma once
#include "ptx/barrier.cuh"
#include "ptx/mbarrier.cuh"

namespace ptx {

// What cuTensorMapEncodeTiled writes. A kernel takes it as `const __grid_constant__ ptx::TensorMap`.
struct alignas(64) TensorMap {
  unsigned long long opaque[16];
};

}  // namespace ptx

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/tma.hpp"
#else

namespace ptx {

// Contiguous bytes: a multiple of 16, both addresses too.
__device__ __forceinline__ void bulk_load(unsigned shared, const void* global, unsigned bytes, unsigned bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared),
               "l"(global), "r"(bytes), "r"(bar)
               : "memory");
}

__device__ __forceinline__ void bulk_store(void* global, unsigned shared, unsigned bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global), "r"(shared), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Wait until at most Pending groups of this thread are unfinished.
template <int Pending>
__device__ __forceinline__ void bulk_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(Pending) : "memory");
}

// The same for their reads alone: shared memory may be written again, the results are not yet to be seen.
template <int Pending>
__device__ __forceinline__ void bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}

// One line for each number of dimensions: the coordinates as text, numbered from 2, 3 and 4, as parameters and as
// operands.
#define PTX_COMMA ,
#define PTX_EACH_RANK(MAKE)                                                                                           \
  MAKE("1d", "%2", "%3", "%4", int x, "r"(x))                                                                         \
  MAKE("2d", "%2, %3", "%3, %4", "%4, %5", int x PTX_COMMA int y, "r"(x), "r"(y))                                     \
  MAKE("3d", "%2, %3, %4", "%3, %4, %5", "%4, %5, %6", int x PTX_COMMA int y PTX_COMMA int z, "r"(x), "r"(y), "r"(z)) \
  MAKE("4d", "%2, %3, %4, %5", "%3, %4, %5, %6", "%4, %5, %6, %7",                                                    \
       int x PTX_COMMA int y PTX_COMMA int z PTX_COMMA int u, "r"(x), "r"(y), "r"(z), "r"(u))                         \
  MAKE("5d", "%2, %3, %4, %5, %6", "%3, %4, %5, %6, %7", "%4, %5, %6, %7, %8",                                        \
       int x PTX_COMMA int y PTX_COMMA int z PTX_COMMA int u PTX_COMMA int v, "r"(x), "r"(y), "r"(z), "r"(u), "r"(v))

#define PTX_TENSOR_COPY(RANK, FROM_2, FROM_3, FROM_4, PARAMETERS, ...)                                           \
  __device__ __forceinline__ void tensor_load(unsigned shared, const TensorMap* map, unsigned bar, PARAMETERS) { \
    asm volatile("cp.async.bulk.tensor." RANK                                                                    \
                 ".shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {" FROM_3                 \
                 "}], [%2];" ::"r"(shared),                                                                      \
                 "l"(map), "r"(bar), __VA_ARGS__                                                                 \
                 : "memory");                                                                                    \
  }                                                                                                              \
  __device__ __forceinline__ void tensor_store(const TensorMap* map, unsigned shared, PARAMETERS) {              \
    asm volatile("cp.async.bulk.tensor." RANK ".global.shared::cta.tile.bulk_group [%0, {" FROM_2                \
                 "}], [%1];" ::"l"(map),                                                                         \
                 "r"(shared), __VA_ARGS__                                                                        \
                 : "memory");                                                                                    \
  }                                                                                                              \
  __device__ __forceinline__ void tensor_add(const TensorMap* map, unsigned shared, PARAMETERS) {                \
    asm volatile("cp.reduce.async.bulk.tensor." RANK ".global.shared::cta.add.tile.bulk_group [%0, {" FROM_2     \
                 "}], [%1];" ::"l"(map),                                                                         \
                 "r"(shared), __VA_ARGS__                                                                        \
                 : "memory");                                                                                    \
  }
PTX_EACH_RANK(PTX_TENSOR_COPY)
#undef PTX_TENSOR_COPY

}  // namespace ptx

#endif
