// The C++ bodies of cuda/ptx/wgmma.cuh: N is twice the length of d.
#pragma once

namespace ptx {

inline void wgmma_fence() { emulator::wgmma_fence(); }
inline void wgmma_commit() { emulator::wgmma_commit(); }
template <int Pending>
inline void wgmma_wait() {
  emulator::wgmma_wait(Pending);
}

// N of the instruction: integers have fewer than floats.
template <unsigned Count>
constexpr bool is_wgmma_n(bool integer) {
  return Count % 4 == 0 && Count <= 128 && (!integer || Count == 4 || Count == 12 || Count % 8 == 0);
}

#define PTX_WGMMA(TYPE)                                                                                               \
  template <Major A = Major::K, Major B = Major::K, unsigned Count>                                                   \
  inline void wgmma_##TYPE##_ss(float (&d)[Count], unsigned long long a, unsigned long long b, int accumulate) {      \
    static_assert(is_wgmma_n<Count>(false), "N is a multiple of 8 up to 256");                                        \
    constexpr emulator::Type kType = emulator::Type::TYPE;                                                            \
    emulator::wgmma({kType, kType, emulator::Sums::f32, 2 * Count, A == Major::MN, B == Major::MN}, d, a, nullptr, b, \
                    accumulate != 0);                                                                                 \
  }                                                                                                                   \
  template <Major B = Major::K, unsigned Count>                                                                       \
  inline void wgmma_##TYPE##_rs(float (&d)[Count], const unsigned (&a)[4], unsigned long long b, int accumulate) {    \
    static_assert(is_wgmma_n<Count>(false), "N is a multiple of 8 up to 256");                                        \
    constexpr emulator::Type kType = emulator::Type::TYPE;                                                            \
    emulator::wgmma({kType, kType, emulator::Sums::f32, 2 * Count, false, B == Major::MN}, d, 0, a, b,                \
                    accumulate != 0);                                                                                 \
  }

PTX_WGMMA(bf16)
PTX_WGMMA(f16)
#undef PTX_WGMMA

// Both forms of a type whose matrices are K-major only.
#define PTX_WGMMA_K_MAJOR(NAME, A, B, D_TYPE, SUMS)                                                                    \
  template <unsigned Count>                                                                                            \
  inline void wgmma_##NAME##_ss(D_TYPE(&d)[Count], unsigned long long a, unsigned long long b, int accumulate) {       \
    static_assert(is_wgmma_n<Count>(emulator::Sums::SUMS != emulator::Sums::f32),                                      \
                  "this wgmma has no such N: see its header");                                                         \
    emulator::wgmma({emulator::Type::A, emulator::Type::B, emulator::Sums::SUMS, 2 * Count, false, false}, d, a,       \
                    nullptr, b, accumulate != 0);                                                                      \
  }                                                                                                                    \
  template <unsigned Count>                                                                                            \
  inline void wgmma_##NAME##_rs(D_TYPE(&d)[Count], const unsigned (&a)[4], unsigned long long b, int accumulate) {     \
    static_assert(is_wgmma_n<Count>(emulator::Sums::SUMS != emulator::Sums::f32),                                      \
                  "this wgmma has no such N: see its header");                                                         \
    emulator::wgmma({emulator::Type::A, emulator::Type::B, emulator::Sums::SUMS, 2 * Count, false, false}, d, 0, a, b, \
                    accumulate != 0);                                                                                  \
  }

}  // namespace ptx
