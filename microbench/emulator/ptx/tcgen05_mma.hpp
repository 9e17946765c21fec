// The C++ bodies of cuda/ptx/tcgen05_mma.cuh.
#pragma once

namespace ptx {

using emulator::tcgen05_fence_after, emulator::tcgen05_fence_before;

#define PTX_TCGEN05_MMA(NAME)                                                                                       \
  template <int Group = 1>                                                                                          \
  inline void tcgen05_mma_##NAME##_ss(unsigned d, unsigned long long a, unsigned long long b, unsigned instruction, \
                                      int accumulate) {                                                             \
    emulator::tcgen05_mma({emulator::TensorKind::NAME, false, accumulate != 0, Group, instruction}, d, a, b);       \
  }                                                                                                                 \
  template <int Group = 1>                                                                                          \
  inline void tcgen05_mma_##NAME##_ts(unsigned d, unsigned a, unsigned long long b, unsigned instruction,           \
                                      int accumulate) {                                                             \
    emulator::tcgen05_mma({emulator::TensorKind::NAME, true, accumulate != 0, Group, instruction}, d, a, b);        \
  }

PTX_TCGEN05_MMA(f16)
PTX_TCGEN05_MMA(f8)
PTX_TCGEN05_MMA(tf32)
PTX_TCGEN05_MMA(i8)
#undef PTX_TCGEN05_MMA

#define PTX_TCGEN05_SCALED_MMA(NAME)                                                                                  \
  template <int Group = 1>                                                                                            \
  inline void tcgen05_mma_##NAME##_ss(unsigned d, unsigned long long a, unsigned long long b, unsigned instruction,   \
                                      unsigned scale_a, unsigned scale_b, int accumulate) {                           \
    emulator::tcgen05_mma({emulator::TensorKind::NAME, false, accumulate != 0, Group, instruction, scale_a, scale_b}, \
                          d, a, b);                                                                                   \
  }                                                                                                                   \
  template <int Group = 1>                                                                                            \
  inline void tcgen05_mma_##NAME##_ts(unsigned d, unsigned a, unsigned long long b, unsigned instruction,             \
                                      unsigned scale_a, unsigned scale_b, int accumulate) {                           \
    emulator::tcgen05_mma({emulator::TensorKind::NAME, true, accumulate != 0, Group, instruction, scale_a, scale_b},  \
                          d, a, b);                                                                                   \
  }

PTX_TCGEN05_SCALED_MMA(mxf8)
PTX_TCGEN05_SCALED_MMA(mxf4)
PTX_TCGEN05_SCALED_MMA(nvf4)
#undef PTX_TCGEN05_SCALED_MMA

#define PTX_TCGEN05_CP(NAME, ROWS, BYTES, LANES)                                        \
  template <int Group = 1>                                                              \
  inline void tcgen05_cp_##NAME(unsigned address, unsigned long long from) {            \
    emulator::tcgen05_cp({ROWS, BYTES, emulator::Spread::LANES, Group}, address, from); \
  }

PTX_TCGEN05_CP(128x256b, 128, 32, once)
PTX_TCGEN05_CP(128x128b, 128, 16, once)
PTX_TCGEN05_CP(64x128b_02_13, 64, 16, warps_02_13)
PTX_TCGEN05_CP(64x128b_01_23, 64, 16, warps_01_23)
PTX_TCGEN05_CP(32x128b, 32, 16, warps_all)
#undef PTX_TCGEN05_CP

template <int Group = 1>
inline void tcgen05_commit(unsigned bar) {
  emulator::tcgen05_commit(bar, Group);
}
template <int Group = 1>
inline void tcgen05_commit_multicast(unsigned bar, unsigned short ranks) {
  emulator::tcgen05_commit_multicast(bar, ranks, Group);
}

}  // namespace ptx
