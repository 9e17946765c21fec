// The C++ bodies of cuda/ptx/wgmma_int8.cuh.
#pragma once

namespace ptx {

PTX_WGMMA_K_MAJOR(s8, s8, s8, int, s32)
PTX_WGMMA_K_MAJOR(s8_sat, s8, s8, int, s32_sat)
PTX_WGMMA_K_MAJOR(u8, u8, u8, int, s32)
PTX_WGMMA_K_MAJOR(u8_sat, u8, u8, int, s32_sat)
PTX_WGMMA_K_MAJOR(s8_u8, s8, u8, int, s32)
PTX_WGMMA_K_MAJOR(s8_u8_sat, s8, u8, int, s32_sat)
PTX_WGMMA_K_MAJOR(u8_s8, u8, s8, int, s32)
PTX_WGMMA_K_MAJOR(u8_s8_sat, u8, s8, int, s32_sat)

}  // namespace ptx
