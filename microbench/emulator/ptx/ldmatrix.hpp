// The C++ bodies of cuda/ptx/ldmatrix.cuh.
#pragma once

namespace ptx {

template <unsigned Count>
inline void ldmatrix(unsigned (&d)[Count], unsigned address) {
  emulator::ldmatrix(d, Count, address, false);
}
template <unsigned Count>
inline void ldmatrix_trans(unsigned (&d)[Count], unsigned address) {
  emulator::ldmatrix(d, Count, address, true);
}
template <unsigned Count>
inline void stmatrix(unsigned address, const unsigned (&d)[Count]) {
  emulator::stmatrix(d, Count, address, false);
}
template <unsigned Count>
inline void stmatrix_trans(unsigned address, const unsigned (&d)[Count]) {
  emulator::stmatrix(d, Count, address, true);
}

}  // namespace ptx
