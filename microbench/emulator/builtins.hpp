// The words of CUDA C++ that kernels use, for a C++ compiler on the host. Included before every emulated source.
#pragma once
#include <math.h>
#include <string.h>

#include "emulator/api.hpp"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __cluster_dims__(...)  // the launch says it here
#define __grid_constant__
#define __align__(bytes) alignas(bytes)
#define __CUDA_ARCH_FEAT_SM90_ALL 1
#define threadIdx (emulator::place->thread)
#define blockIdx (emulator::place->block)
#define blockDim (emulator::block_dim)
#define gridDim (emulator::grid_dim)
#define fmaxf emulator::larger
#define fminf emulator::smaller

struct uint2 {
  unsigned x, y;
};
struct uint4 {
  unsigned x, y, z, w;
};
struct float2 {
  float x, y;
};
struct float4 {
  float x, y, z, w;
};

inline void __syncthreads() { emulator::barrier_sync(0, 0); }
inline void __syncwarp(unsigned mask = ~0u) { emulator::syncwarp(mask); }
// What came before a fence is what an atomic update hands on to other blocks.
inline void __threadfence_block() {}
inline void __threadfence() { emulator::threadfence(); }
inline void __threadfence_system() { emulator::threadfence(); }
inline void __trap() { emulator::fail("__trap() was reached"); }

namespace emulator {

// Through a register that the compiler does not see into, so that it fuses nothing across.
inline float rounded(float x) {
  asm("" : "+x"(x));
  return x;
}

// FMNMX: any NaN loses to a number, also a signalling one, which the C library would return; +0 is larger than -0.
inline float larger(float a, float b) {
  if (a != a) return b != b ? bits_as<float>(0x7FFFFFFFu) : b;
  return b < a || b != b || (a == b && !signbit(a)) ? a : b;
}
inline float smaller(float a, float b) { return -larger(-a, -b); }

template <class T>
inline T shuffle_any(Shuffle kind, unsigned mask, T value, unsigned operand, int width) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles move 32 or 64 bits");
  if constexpr (sizeof(T) == 4) {
    return bits_as<T>(shuffle(kind, mask, bits_as<u32>(value), operand, static_cast<u32>(width)));
  } else {
    u64 word = bits_as<u64>(value);
    u64 low = shuffle(kind, mask, static_cast<u32>(word), operand, static_cast<u32>(width));
    u64 high = shuffle(kind, mask, static_cast<u32>(word >> 32), operand, static_cast<u32>(width));
    return bits_as<T>(high << 32 | low);
  }
}

}  // namespace emulator

#define SMSCOPE_SHUFFLE(NAME, KIND)                                                     \
  template <class T>                                                                    \
  inline T NAME(unsigned mask, T value, unsigned operand, int width = 32) {             \
    return emulator::shuffle_any(emulator::Shuffle::KIND, mask, value, operand, width); \
  }
SMSCOPE_SHUFFLE(__shfl_sync, index)
SMSCOPE_SHUFFLE(__shfl_up_sync, up)
SMSCOPE_SHUFFLE(__shfl_down_sync, down)
SMSCOPE_SHUFFLE(__shfl_xor_sync, exclusive_or)
#undef SMSCOPE_SHUFFLE

inline unsigned __ballot_sync(unsigned mask, int predicate) { return emulator::ballot(mask, predicate != 0); }
inline int __any_sync(unsigned mask, int predicate) { return emulator::ballot(mask, predicate != 0) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return emulator::ballot(mask, predicate == 0) == 0; }

inline unsigned __float_as_uint(float x) { return emulator::bits_as<unsigned>(x); }
inline int __float_as_int(float x) { return emulator::bits_as<int>(x); }
inline float __uint_as_float(unsigned x) { return emulator::bits_as<float>(x); }
inline float __int_as_float(int x) { return emulator::bits_as<float>(x); }
inline long long __double_as_longlong(double x) { return emulator::bits_as<long long>(x); }
inline float __fadd_rn(float a, float b) { return emulator::rounded(emulator::rounded(a) + emulator::rounded(b)); }
inline float __fmul_rn(float a, float b) { return emulator::rounded(a * b); }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }

// Threads switch only where they wait: a plain update is atomic.
template <class T>
__attribute__((noinline, no_sanitize("thread"))) T atomicAdd(T* address, T value) {
  emulator::atomic_access(address, sizeof value);
  T old = *address;
  *address = old + value;
  return old;
}

template <class T>
inline T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
inline T max(T a, T b) {
  return a < b ? b : a;
}
