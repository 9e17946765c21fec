// Clusters (sm_90): blocks that run at the same time on neighbouring SMs, meet at a barrier, and reach each other's
// shared memory. A launch says how many; a block's number among them is its rank.
//
// An address of the cluster's window names block and offset: map_shared turns an address of this block's shared memory
// into that of the same place in another block (one PRMT: the rank becomes bits 24 to 31). A block's own addresses are
// valid in the window as well. A block must not end while another one uses its shared memory: cluster_sync at the end.
#pragma once

namespace ptx {

struct dim {
  unsigned x, y, z;
};

}  // namespace ptx

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/cluster.hpp"
#else

namespace ptx {

__device__ __forceinline__ unsigned cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// Blocks of this cluster.
__device__ __forceinline__ unsigned cluster_size() {
  unsigned size;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  return size;
}

#define PTX_CLUSTER_DIM(NAME, REGISTER)                        \
  __device__ __forceinline__ dim NAME() {                      \
    dim d;                                                     \
    asm volatile("mov.u32 %0, %%" REGISTER ".x;" : "=r"(d.x)); \
    asm volatile("mov.u32 %0, %%" REGISTER ".y;" : "=r"(d.y)); \
    asm volatile("mov.u32 %0, %%" REGISTER ".z;" : "=r"(d.z)); \
    return d;                                                  \
  }
PTX_CLUSTER_DIM(block_in_cluster, "cluster_ctaid")  // blockIdx within the cluster
PTX_CLUSTER_DIM(cluster_dim, "cluster_nctaid")      // gridDim of the cluster
PTX_CLUSTER_DIM(cluster_index, "clusterid")         // of the cluster in the grid
#undef PTX_CLUSTER_DIM

// The barrier of all threads of the cluster, in two halves: every thread arrives, then waits. What a thread did before
// it arrived is seen by all after their wait. Threads that have ended are not waited for.
__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }

// Orders nothing but inits of mbarriers that fence_mbarrier_init followed, and saves two MEMBARs.
__device__ __forceinline__ void cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}

__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }

__device__ __forceinline__ void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}

__device__ __forceinline__ unsigned map_shared(unsigned address, unsigned rank) {
  unsigned mapped;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
  return mapped;
}

// Loads and stores in the cluster's window; the address is a mapped one. SASS has generic LD and ST for them. The loads
// are weak, and ptxas may merge or narrow them: as volatile or relaxed ones they would become LD.STRONG.
__device__ __forceinline__ unsigned load_cluster(unsigned address) {
  unsigned value;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
  return value;
}

__device__ __forceinline__ void load_cluster4(unsigned (&values)[4], unsigned address) {
  asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(values[0]), "=r"(values[1]), "=r"(values[2]), "=r"(values[3])
               : "r"(address)
               : "memory");
}

__device__ __forceinline__ void store_cluster(unsigned address, unsigned value) {
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

__device__ __forceinline__ void store_cluster4(unsigned address, const unsigned (&values)[4]) {
  asm volatile("st.shared::cluster.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(values[0]), "r"(values[1]),
               "r"(values[2]), "r"(values[3])
               : "memory");
}

// Adds, as one step among all additions there.
__device__ __forceinline__ void add_cluster(unsigned address, unsigned value) {
  asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

// Stores, at some moment, and completes the bytes on the mbarrier `bar`, which lies in the same block as `address`.
__device__ __forceinline__ void store_async(unsigned address, unsigned value, unsigned bar) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(address),
               "r"(value), "r"(bar)
               : "memory");
}

__device__ __forceinline__ void store_async4(unsigned address, const unsigned (&values)[4], unsigned bar) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(address),
      "r"(values[0]), "r"(values[1]), "r"(values[2]), "r"(values[3]), "r"(bar)
      : "memory");
}

}  // namespace ptx

#endif
