// wgmma m64nNk32 on 8-bit integers, s32 accumulators (sm_90a): wgmma.cuh with both matrices K-major. N is 8, 24, or a
// multiple of 16 up to 256. A slice is 32 elements, 32 bytes as ever, so wgmma_slice(k) holds; a 128-byte row has 128
// elements.
//
//   a[w], byte e    row g + 8 (w % 2), k  16 (w / 2) + 4t + e        the a of mma_m16n8k32_s8, in each warp
//
// wgmma_s8_ss has both matrices signed, _u8 both unsigned, _s8_u8 and _u8_s8 mix them, A named first. A sum that leaves
// s32 wraps; with _sat, as in wgmma_s8_sat_ss, it stays at its end.
#pragma once
#include "ptx/wgmma.cuh"

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/wgmma_int8.hpp"
#else

namespace ptx {

#define PTX_WGMMA_INT8(NAME, A, B)                                                  \
  PTX_WGMMA_INTEGER_N(PTX_WGMMA_K_MAJOR, NAME, "k32.s32." #A "." #B, int, "+r", "") \
  PTX_WGMMA_INTEGER_N(PTX_WGMMA_K_MAJOR, NAME##_sat, "k32.s32." #A "." #B ".satfinite", int, "+r", "")

PTX_WGMMA_INT8(s8, s8, s8)
PTX_WGMMA_INT8(u8, u8, u8)
PTX_WGMMA_INT8(s8_u8, s8, u8)
PTX_WGMMA_INT8(u8_s8, u8, s8)
#undef PTX_WGMMA_INT8

}  // namespace ptx

#endif
