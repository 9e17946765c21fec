// One block by itself, or two of a cluster as a pair (CTA_GROUP 2), whose tensor cores multiply 256 rows at a time by
// the same K and V (PTX ISA, 'cta_group'). Each block has its own rows of Q, and S, P and O of these in its own tensor
// memory, where the softmax and the correction find them as ever. Of B a block holds half of the columns: half of a
// tile's keys for Q K^T, half of V's columns for P V, so that a tile of K and V costs it half the shared memory, and
// half the reading of it, for as many products.
//
// One thread of the block of rank 0 issues for both, and so:
//   ready            the softmax and correction warps of both blocks arrive in the issuing block
//   q_full, kv_full  the other block's halves are announced there by a warp of that block (relay.cuh)
//   all commits      arrive in both blocks
#pragma once
#include "ptx/cluster.cuh"
#include "ptx/tcgen05.cuh"
#include "turns.cuh"

constexpr unsigned kIssuingBlock = 0;
constexpr unsigned short kBothBlocks = 3;

__device__ __forceinline__ int block_of_pair() { return kGroup == 2 ? static_cast<int>(ptx::cluster_rank()) : 0; }

__device__ __forceinline__ bool issues() { return block_of_pair() == kIssuingBlock; }

// Who arrives at the issuing block's barriers of Q, K and V beside its own loader.
__device__ __forceinline__ unsigned relays() { return kGroup == 2 && issues(); }

// A tile of rows as this block has it: both blocks of a pair go over the same keys, each for rows of its own.
__device__ __forceinline__ Work own_work(const Launch& launch, const ptx::vec4& tile) {
  Work work = work_of(launch, tile);
  work.row += block_of_pair() * kBlockRows;
  return work;
}

// By a whole warp, as arrive_together, in the block that issues.
__device__ __forceinline__ void arrive_at_issuer(unsigned bar) {
  if constexpr (kGroup == 1) {
    arrive_together(bar);
  } else {
    __syncwarp();
    if (ptx::elect_one()) ptx::mbarrier_arrive_remote(ptx::map_shared(bar, kIssuingBlock));
  }
}

__device__ __forceinline__ void commit(unsigned bar) {
  if constexpr (kGroup == 1)
    ptx::tcgen05_commit(bar);
  else
    ptx::tcgen05_commit_multicast<2>(bar, kBothBlocks);
}

// All threads that work together. At the end no block may be gone while arrivals from the other one are under way, and
// neither gives back tensor memory that a product of both still uses.
__device__ __forceinline__ void meet() {
  if constexpr (kGroup == 1)
    __syncthreads();
  else
    ptx::cluster_sync();
}
