// The C++ bodies of cuda/ptx/wgmma.cuh: N is twice the length of d.
#pragma once

namespace ptx {

inline void wgmma_fence() { emulator::wgmma_fence(); }
inline void wgmma_commit() { emulator::wgmma_commit(); }
template <int Pending>
inline void wgmma_wait() {
  emulator::wgmma_wait(Pending);
}

#define PTX_WGMMA(TYPE)                                                                                              \
  template <Major A = Major::K, Major B = Major::K, unsigned Count>                                                  \
  inline void wgmma_##TYPE##_ss(float (&d)[Count], unsigned long long a, unsigned long long b, int accumulate) {     \
    emulator::wgmma(d, Count, emulator::Type::TYPE, a, nullptr, b, accumulate != 0, A == Major::MN, B == Major::MN); \
  }                                                                                                                  \
  template <Major B = Major::K, unsigned Count>                                                                      \
  inline void wgmma_##TYPE##_rs(float (&d)[Count], const unsigned (&a)[4], unsigned long long b, int accumulate) {   \
    emulator::wgmma(d, Count, emulator::Type::TYPE, 0, a, b, accumulate != 0, false, B == Major::MN);                \
  }

PTX_WGMMA(bf16)
PTX_WGMMA(f16)
#undef PTX_WGMMA

}  // namespace ptx
