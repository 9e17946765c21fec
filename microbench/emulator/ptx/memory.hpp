// The C++ bodies of cuda/ptx/memory.cuh. Accesses of shared memory are inlined, so that each has a place in the code of
// its own (runtime/shared_trace.hpp).
#pragma once

namespace ptx {

using emulator::shared_base;

inline u64 load(u64 address) { return emulator::loaded<u64>(emulator::load_global, address); }

inline vec4 load4(u64 address) { return emulator::loaded<vec4>(emulator::load_global, address); }

inline u64 load2_cg(u64 address) { return load(address); }

inline vec4 load4_cg(u64 address) { return load4(address); }

inline void store2(u64 address, u32 x, u32 y) {
  const u32 two[2] = {x, y};
  emulator::store_global(address, two, sizeof two);
}

inline void store4(u64 address, vec4 v) { emulator::store_global(address, &v, sizeof v); }

inline void store4(u64 address, float x, float y, float z, float w) {
  const float four[4] = {x, y, z, w};
  emulator::store_global(address, four, sizeof four);
}

inline void store4_if(bool really, u64 address, vec4 v) {
  if (really) store4(address, v);
}

inline void store_if(bool really, u64 address, u32 value) {
  if (really) emulator::store_global(address, &value, sizeof value);
}

// As both fences and the update between them.
inline int count_ordered(int* counter) {
  __threadfence();
  const int before = atomicAdd(counter, 1);
  __threadfence();
  return before;
}

// Behind a volatile read, by which a block looks out for others (runtime/global_races.cpp): these run before it is made.
inline int load_acquire(const int* word) {
  (void)*static_cast<const volatile int*>(word);
  const int value = atomicAdd(const_cast<int*>(word), 0);
  __threadfence();
  return value;
}

__attribute__((always_inline)) inline void store_shared(u32 address, u32 value) {
  emulator::store_shared(address, &value, sizeof value);
}

__attribute__((always_inline)) inline void store_shared4(u32 address, vec4 v) {
  emulator::store_shared(address, &v, sizeof v);
}

__attribute__((always_inline)) inline u32 load_shared(u32 address) {
  return emulator::loaded<u32>(emulator::load_shared, address);
}

__attribute__((always_inline)) inline u64 load_shared2(u32 address) {
  return emulator::loaded<u64>(emulator::load_shared, address);
}

__attribute__((always_inline)) inline vec4 load_shared4(u32 address) {
  return emulator::loaded<vec4>(emulator::load_shared, address);
}

}  // namespace ptx
