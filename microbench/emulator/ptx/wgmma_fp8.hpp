// The C++ bodies of cuda/ptx/wgmma_fp8.cuh.
#pragma once

namespace ptx {

PTX_WGMMA_K_MAJOR(e4m3, e4m3, e4m3, float, f32)
PTX_WGMMA_K_MAJOR(e5m2, e5m2, e5m2, float, f32)
PTX_WGMMA_K_MAJOR(e4m3_e5m2, e4m3, e5m2, float, f32)
PTX_WGMMA_K_MAJOR(e5m2_e4m3, e5m2, e4m3, float, f32)

}  // namespace ptx
