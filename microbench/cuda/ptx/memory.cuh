// Loads and stores as single instructions, by width and cache operator. Addresses of shared memory are the 32-bit
// addresses that LDS takes: a generic pointer would cost an instruction in every chain.
#pragma once

namespace ptx {

using u32 = unsigned;
using u64 = unsigned long long;

struct vec4 {
  u32 x, y, z, w;
};

}  // namespace ptx

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/memory.hpp"
#else

namespace ptx {

// Cached in L1 and L2, the default: one bare LDG.E.64 (an explicit .ca becomes LDG.E.64.STRONG.SM). The loaded word is
// the next address.
__device__ __forceinline__ u64 load(u64 address) {
  u64 value;
  asm volatile("ld.global.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
  return value;
}

__device__ __forceinline__ vec4 load4(u64 address) {
  vec4 v;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(address));
  return v;
}

// Cached in the L2 only (LDG.E.64.STRONG.GPU).
__device__ __forceinline__ u64 load2_cg(u64 address) {
  u64 value;
  asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(value) : "l"(address));
  return value;
}

// Cached in the L2 only (LDG.E.128.STRONG.GPU), so that an L2 probe never sees its L1.
__device__ __forceinline__ vec4 load4_cg(u64 address) {
  vec4 v;
  asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(address));
  return v;
}

__device__ __forceinline__ void store2(u64 address, u32 x, u32 y) {
  asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(address), "r"(x), "r"(y) : "memory");
}

__device__ __forceinline__ void store4(u64 address, vec4 v) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}

// Of floats: as words they are copied first where the compiler likes, and ptxas lets no wgmma run beside others whose
// sums are read before these are waited for.
__device__ __forceinline__ void store4(u64 address, float x, float y, float z, float w) {
  asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(address), "f"(x), "f"(y), "f"(z), "f"(w) : "memory");
}

// Stores under a predicate, without a branch.
__device__ __forceinline__ void store4_if(bool really, u64 address, vec4 v) {
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %0, 0; @p st.global.v4.u32 [%1], {%2, %3, %4, %5}; }" ::"r"((u32)really),
               "l"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}

__device__ __forceinline__ void store_if(bool really, u64 address, u32 value) {
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %0, 0; @p st.global.u32 [%1], %2; }" ::"r"((u32)really), "l"(address),
               "r"(value)
               : "memory");
}

// A count of one more, and what was counted before: whatever this thread knew to be written before is there for who reads
// the new count, and the other way round. A barrier makes it the block's. Two __threadfence beside an atomicAdd, which
// are of all accesses in one order, take 0.3 to 0.5 us more (H100, gathered_parts.csv).
__device__ __forceinline__ int count_ordered(int* counter) {
  int before;
  asm volatile("atom.acq_rel.gpu.global.add.s32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
  return before;
}

// A word that other blocks count in: whoever counted (count_ordered) had written before what is read behind this.
__device__ __forceinline__ int load_acquire(const int* word) {
  int value;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}

// The 32-bit address of this block's dynamic shared memory.
__device__ __forceinline__ u32 shared_base() {
  extern __shared__ __align__(1024) unsigned char arena[];
  u64 generic = (u64)arena;
  u64 address;
  asm("cvta.to.shared.u64 %0, %1;" : "=l"(address) : "l"(generic));
  return (u32)address;
}

__device__ __forceinline__ void store_shared(u32 address, u32 value) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

__device__ __forceinline__ void store_shared4(u32 address, vec4 v) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}

// volatile: ptxas merges plain loads of one address, and a bandwidth probe then times its XORs. The SASS is a plain
// LDS.
__device__ __forceinline__ u32 load_shared(u32 address) {
  u32 value;
  asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
  return value;
}

__device__ __forceinline__ u64 load_shared2(u32 address) {
  u64 value;
  asm volatile("ld.volatile.shared.u64 %0, [%1];" : "=l"(value) : "r"(address) : "memory");
  return value;
}

__device__ __forceinline__ vec4 load_shared4(u32 address) {
  vec4 v;
  asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}

}  // namespace ptx

#endif
