// Bulk copies within a cluster (sm_90): one copy from global memory that lands in several blocks, and one from shared
// memory to a peer's.
//
// Multicast: bit r of `ranks` names the block of rank r. Each gets the bytes at the offset of `shared`, and completes
// them on its own mbarrier at the offset of `bar`: every one of them expects all that lands with it, whoever asked.
#pragma once
#include "ptx/tma.cuh"

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/multicast.hpp"
#else

namespace ptx {

__device__ __forceinline__ void bulk_load_multicast(unsigned shared, const void* global, unsigned bytes, unsigned bar,
                                                    unsigned short ranks) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], "
      "%4;" ::"r"(shared),
      "l"(global), "r"(bytes), "r"(bar), "h"(ranks)
      : "memory");
}

// `to` and `bar` are mapped addresses of one block: it is the receiver that waits. The async proxy reads `from`.
__device__ __forceinline__ void bulk_send(unsigned to, unsigned from, unsigned bytes, unsigned bar) {
  asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "r"(from), "r"(bytes), "r"(bar)
               : "memory");
}

// As tensor_load in tma.cuh.
#define PTX_MULTICAST(RANK, FROM_2, FROM_3, FROM_4, PARAMETERS, ...)                                                \
  __device__ __forceinline__ void tensor_load_multicast(unsigned shared, const TensorMap* map, unsigned bar,        \
                                                        unsigned short ranks, PARAMETERS) {                         \
    asm volatile("cp.async.bulk.tensor." RANK                                                                       \
                 ".shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {" FROM_4 \
                 "}], [%2], %3;" ::"r"(shared),                                                                     \
                 "l"(map), "r"(bar), "h"(ranks), __VA_ARGS__                                                        \
                 : "memory");                                                                                       \
  }
PTX_EACH_RANK(PTX_MULTICAST)
#undef PTX_MULTICAST

}  // namespace ptx

#endif
