// wgmma m64nNk32 on fp8, f32 accumulators (sm_90a): wgmma.cuh with both matrices K-major. N is every multiple of 8 from
// 8 to 256. A slice is 32 elements, 32 bytes as ever, so wgmma_slice(k) holds; a 128-byte row has 128 elements.
//
//   a[w], byte e    row g + 8 (w % 2), k  16 (w / 2) + 4t + e        the a of mma_m16n8k32_e4m3, in each warp
//
// wgmma_e4m3_ss has both matrices alike, wgmma_e4m3_e5m2_ss mixes them, A named first.
//
// The sum is not an f32 inside: Hopper's fp8 keeps about 14 bits of it below the largest product (DeepSeek-V3, section
// 3.5.2, arXiv 2412.19437). Sums over a long k are better added up outside, every few instructions.
#pragma once
#include "ptx/wgmma.cuh"

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/wgmma_fp8.hpp"
#else

namespace ptx {

PTX_WGMMA_FLOAT_N(PTX_WGMMA_K_MAJOR, e4m3, "k32.f32.e4m3.e4m3", float, "+f", ", 1, 1")
PTX_WGMMA_FLOAT_N(PTX_WGMMA_K_MAJOR, e5m2, "k32.f32.e5m2.e5m2", float, "+f", ", 1, 1")
PTX_WGMMA_FLOAT_N(PTX_WGMMA_K_MAJOR, e4m3_e5m2, "k32.f32.e4m3.e5m2", float, "+f", ", 1, 1")
PTX_WGMMA_FLOAT_N(PTX_WGMMA_K_MAJOR, e5m2_e4m3, "k32.f32.e5m2.e4m3", float, "+f", ", 1, 1")

}  // namespace ptx

#endif
