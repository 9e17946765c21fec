// The C++ bodies of cuda/ptx/mma_sync_8bit.cuh.
#pragma once

namespace ptx {

#define PTX_MMA_INTEGER(NAME, A, B)                  \
  PTX_MMA(16, 16, NAME, A, B, int, 4, s32)           \
  PTX_MMA(32, 32, NAME, A, B, int, 4, s32)           \
  PTX_MMA(16, 16, NAME##_sat, A, B, int, 4, s32_sat) \
  PTX_MMA(32, 32, NAME##_sat, A, B, int, 4, s32_sat)

PTX_MMA_INTEGER(s8, s8, s8)
PTX_MMA_INTEGER(u8, u8, u8)
PTX_MMA_INTEGER(s8_u8, s8, u8)
PTX_MMA_INTEGER(u8_s8, u8, s8)
#undef PTX_MMA_INTEGER

#define PTX_MMA_FP8(NAME, A, B)                 \
  PTX_MMA(16, 16, NAME, A, B, float, 4, f32)    \
  PTX_MMA(32, 32, NAME, A, B, float, 4, f32)    \
  PTX_MMA(16, 16, NAME, A, B, unsigned, 2, f16) \
  PTX_MMA(32, 32, NAME, A, B, unsigned, 2, f16)

PTX_MMA_FP8(e4m3, e4m3, e4m3)
PTX_MMA_FP8(e5m2, e5m2, e5m2)
PTX_MMA_FP8(e4m3_e5m2, e4m3, e5m2)
PTX_MMA_FP8(e5m2_e4m3, e5m2, e4m3)
#undef PTX_MMA_FP8

}  // namespace ptx
