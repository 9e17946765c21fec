// A value reduced over a warp. Shuffles and votes are words of CUDA C++ (__shfl_xor_sync, __ballot_sync), which the
// emulator has as well.
#pragma once

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/warp.hpp"
#else

namespace ptx {

// Integers: one REDUX, from sm_80 on. Every lane that `mask` names calls with that mask, and gets the result.
#define PTX_REDUX(OP, KIND, TYPE)                                                                    \
  __device__ __forceinline__ TYPE redux_##OP(TYPE value, unsigned mask = ~0u) {                      \
    TYPE result;                                                                                     \
    asm volatile("redux.sync." #OP "." #KIND " %0, %1, %2;" : "=r"(result) : "r"(value), "r"(mask)); \
    return result;                                                                                   \
  }

PTX_REDUX(add, s32, int)
PTX_REDUX(min, s32, int)
PTX_REDUX(max, s32, int)
PTX_REDUX(add, u32, unsigned)
PTX_REDUX(min, u32, unsigned)
PTX_REDUX(max, u32, unsigned)
PTX_REDUX(and, b32, unsigned)
PTX_REDUX(or, b32, unsigned)
PTX_REDUX(xor, b32, unsigned)
#undef PTX_REDUX

// f32, over all 32 lanes: one CREDUX on sm_100a and sm_103a, five shuffles elsewhere. A NaN loses to a number.
#if defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__CUDA_ARCH_FEAT_SM103_ALL)
#define PTX_REDUX_F32(OP)                                                           \
  __device__ __forceinline__ float redux_##OP(float value) {                        \
    float result;                                                                   \
    asm volatile("redux.sync." #OP ".f32 %0, %1, -1;" : "=f"(result) : "f"(value)); \
    return result;                                                                  \
  }
#else
#define PTX_REDUX_F32(OP)                                                                                \
  __device__ __forceinline__ float redux_##OP(float value) {                                             \
    for (int lanes = 16; lanes; lanes /= 2) value = f##OP##f(value, __shfl_xor_sync(~0u, value, lanes)); \
    return value;                                                                                        \
  }
#endif

PTX_REDUX_F32(min)
PTX_REDUX_F32(max)
#undef PTX_REDUX_F32

}  // namespace ptx

#endif
