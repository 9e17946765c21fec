// What the macros at the end of cuda/ptx/mma_sync_8bit.cuh stand for.
#pragma once

#define PTX_MMA_INTEGER(NAME, A, B)                  \
  PTX_MMA(16, 16, NAME, A, B, int, 4, s32)           \
  PTX_MMA(32, 32, NAME, A, B, int, 4, s32)           \
  PTX_MMA(16, 16, NAME##_sat, A, B, int, 4, s32_sat) \
  PTX_MMA(32, 32, NAME##_sat, A, B, int, 4, s32_sat)

#define PTX_MMA_FP8(NAME, A, B)                 \
  PTX_MMA(16, 16, NAME, A, B, float, 4, f32)    \
  PTX_MMA(32, 32, NAME, A, B, float, 4, f32)    \
  PTX_MMA(16, 16, NAME, A, B, unsigned, 2, f16) \
  PTX_MMA(32, 32, NAME, A, B, unsigned, 2, f16)
