// mma.sync on 8-bit numbers: integers (sm_80) with s32 accumulators, and fp8 (sm_89) with f32 or f16 ones. A is 16 x K,
// row-major, B is K x 8, column-major. The fragments are those of mma_sync.cuh with P = 4 elements to a word; d is laid
// out alike for every type.
//
//   mma_m16n8k32_s8(d, a, b)         a and b signed;  _u8 both unsigned;  _s8_u8 and _u8_s8 mixed, A named first
//   mma_m16n8k32_s8_sat(d, a, b)     a sum that leaves s32 stays at its end; without _sat it wraps
//   mma_m16n8k32_e4m3(d, a, b)       a and b alike;  _e5m2;  _e4m3_e5m2 and _e5m2_e4m3 mixed, A named first
//   mma_m16n8k16_...                 the same with a of two words and b of one
//
// Integers are one IMMA from sm_80 to sm_120a. fp8 is one QMMA on sm_89 and sm_120a; sm_90a, sm_100a and sm_103a unpack
// it to f16 and run two HMMA, as their own fp8 is that of wgmma and tcgen05 (SASS of NVRTC 12.9).
#pragma once
#include "ptx/mma_sync.cuh"

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/mma_sync_8bit.hpp"
#else

#define PTX_MMA_INTEGER(NAME, A, B)                                              \
  PTX_MMA_2(m16n8k16, NAME, ".s32." #A "." #B ".s32", int, "+r")                 \
  PTX_MMA_4(m16n8k32, NAME, ".s32." #A "." #B ".s32", int, "+r")                 \
  PTX_MMA_2(m16n8k16, NAME##_sat, ".satfinite.s32." #A "." #B ".s32", int, "+r") \
  PTX_MMA_4(m16n8k32, NAME##_sat, ".satfinite.s32." #A "." #B ".s32", int, "+r")

#define PTX_MMA_FP8(NAME, A, B)                                    \
  PTX_MMA_2(m16n8k16, NAME, ".f32." #A "." #B ".f32", float, "+f") \
  PTX_MMA_4(m16n8k32, NAME, ".f32." #A "." #B ".f32", float, "+f") \
  PTX_MMA_2_F16(m16n8k16, NAME, ".f16." #A "." #B ".f16")          \
  PTX_MMA_4_F16(m16n8k32, NAME, ".f16." #A "." #B ".f16")

#endif

namespace ptx {

PTX_MMA_INTEGER(s8, s8, s8)
PTX_MMA_INTEGER(u8, u8, u8)
PTX_MMA_INTEGER(s8_u8, s8, u8)
PTX_MMA_INTEGER(u8_s8, u8, s8)
#undef PTX_MMA_INTEGER

PTX_MMA_FP8(e4m3, e4m3, e4m3)
PTX_MMA_FP8(e5m2, e5m2, e5m2)
PTX_MMA_FP8(e4m3_e5m2, e4m3, e5m2)
PTX_MMA_FP8(e5m2_e4m3, e5m2, e4m3)
#undef PTX_MMA_FP8

}  // namespace ptx
