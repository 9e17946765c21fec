// wgmma m64nNk8 on tf32, f32 accumulators (sm_90a): wgmma.cuh with both matrices K-major. N is every multiple of 8 from
// 8 to 256. A slice is 8 elements, 32 bytes as ever, so wgmma_slice(k) holds; a 128-byte row has 32 elements. The lower
// 13 bits of an element are ignored.
//
//   a[w]    row g + 8 (w % 2), k  t + 4 (w / 2)        the a of mma_m16n8k8_tf32, in each warp
#pragma once
#include "ptx/wgmma.cuh"

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/wgmma_tf32.hpp"
#else

namespace ptx {

PTX_WGMMA_FLOAT_N(PTX_WGMMA_K_MAJOR, tf32, "k8.f32.tf32.tf32", float, "+f", ", 1, 1")

}  // namespace ptx

#endif
