// The C++ bodies of cuda/ptx/tcgen05_ld.cuh.
#pragma once

namespace ptx {

using emulator::tcgen05_wait_ld, emulator::tcgen05_wait_st;

#define PTX_TCGEN05_MOVE(SHAPE, LEAST)                                                                      \
  template <unsigned Count>                                                                                 \
  inline void tcgen05_ld_##SHAPE(unsigned (&d)[Count], unsigned address) {                                  \
    static_assert(Count >= LEAST && Count <= 128 && !(Count & (Count - 1)), "no such number of registers"); \
    emulator::tcgen05_ld(d, Count, {emulator::DataShape::of_##SHAPE}, address);                             \
  }                                                                                                         \
  template <unsigned Count>                                                                                 \
  inline void tcgen05_st_##SHAPE(unsigned address, const unsigned (&d)[Count]) {                            \
    static_assert(Count >= LEAST && Count <= 128 && !(Count & (Count - 1)), "no such number of registers"); \
    emulator::tcgen05_st(d, Count, {emulator::DataShape::of_##SHAPE}, address);                             \
  }

PTX_TCGEN05_MOVE(32x32b, 1)
PTX_TCGEN05_MOVE(16x64b, 1)
PTX_TCGEN05_MOVE(16x128b, 2)
PTX_TCGEN05_MOVE(16x256b, 4)
#undef PTX_TCGEN05_MOVE

template <unsigned Split, unsigned Count>
inline void tcgen05_ld_16x32bx2(unsigned (&d)[Count], unsigned address) {
  static_assert(Count >= 1 && Count <= 128 && !(Count & (Count - 1)), "no such number of registers");
  emulator::tcgen05_ld(d, Count, {emulator::DataShape::of_16x32bx2, Split}, address);
}
template <unsigned Split, unsigned Count>
inline void tcgen05_st_16x32bx2(unsigned address, const unsigned (&d)[Count]) {
  static_assert(Count >= 1 && Count <= 128 && !(Count & (Count - 1)), "no such number of registers");
  static_assert(Split >= Count, "both halves store the same words");
  emulator::tcgen05_st(d, Count, {emulator::DataShape::of_16x32bx2, Split}, address);
}

}  // namespace ptx
