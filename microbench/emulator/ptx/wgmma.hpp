// The C++ bodies of cuda/ptx/wgmma.cuh: N is twice the length of d.
#pragma once

namespace ptx {

using emulator::wgmma_commit, emulator::wgmma_fence;
template <int Pending>
inline void wgmma_wait() {
  emulator::wgmma_wait(Pending);
}

template <class D, unsigned Count>
inline void wgmma_of(D (&d)[Count], emulator::Wgmma shape, unsigned long long a, const unsigned* registers,
                     unsigned long long b, int accumulate) {
  constexpr bool kInteger = D(0.5) == D(0);  // which have fewer N than floats
  static_assert(Count % 4 == 0 && Count <= 128 && (!kInteger || Count == 4 || Count == 12 || Count % 8 == 0),
                "this wgmma has no such N: see its header");
  shape.columns = 2 * Count;
  emulator::wgmma(shape, d, a, registers, b, accumulate != 0);
}

#define PTX_WGMMA(TYPE)                                                                                               \
  template <Major A = Major::K, Major B = Major::K, unsigned Count>                                                   \
  inline void wgmma_##TYPE##_ss(float (&d)[Count], unsigned long long a, unsigned long long b, int accumulate) {      \
    wgmma_of(d, {emulator::Type::TYPE, emulator::Type::TYPE, emulator::Sums::f32, 0, A == Major::MN, B == Major::MN}, \
             a, nullptr, b, accumulate);                                                                              \
  }                                                                                                                   \
  template <Major B = Major::K, unsigned Count>                                                                       \
  inline void wgmma_##TYPE##_rs(float (&d)[Count], const unsigned (&a)[4], unsigned long long b, int accumulate) {    \
    wgmma_of(d, {emulator::Type::TYPE, emulator::Type::TYPE, emulator::Sums::f32, 0, false, B == Major::MN}, 0, a, b, \
             accumulate);                                                                                             \
  }

PTX_WGMMA(bf16)
PTX_WGMMA(f16)
#undef PTX_WGMMA

// Both forms of a type whose matrices are K-major only.
#define PTX_WGMMA_K_MAJOR(NAME, A, B, D_TYPE, SUMS)                                                                  \
  template <unsigned Count>                                                                                          \
  inline void wgmma_##NAME##_ss(D_TYPE(&d)[Count], unsigned long long a, unsigned long long b, int accumulate) {     \
    wgmma_of(d, {emulator::Type::A, emulator::Type::B, emulator::Sums::SUMS, 0, false, false}, a, nullptr, b,        \
             accumulate);                                                                                            \
  }                                                                                                                  \
  template <unsigned Count>                                                                                          \
  inline void wgmma_##NAME##_rs(D_TYPE(&d)[Count], const unsigned (&a)[4], unsigned long long b, int accumulate) {   \
    wgmma_of(d, {emulator::Type::A, emulator::Type::B, emulator::Sums::SUMS, 0, false, false}, 0, a, b, accumulate); \
  }

}  // namespace ptx
