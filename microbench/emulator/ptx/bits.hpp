// The C++ bodies of cuda/ptx/bits.cuh.
#pragma once

namespace ptx {

inline unsigned prmt(unsigned a, unsigned b, unsigned selector) {
  unsigned long long both = static_cast<unsigned long long>(b) << 32 | a;
  unsigned word = 0;
  for (int i = 0; i < 4; ++i) {
    unsigned pick = selector >> 4 * i, byte = both >> (pick & 7) * 8 & 0xFF;
    if (pick & 8) byte = byte & 0x80 ? 0xFF : 0;
    word |= byte << 8 * i;
  }
  return word;
}

template <unsigned Table>
inline unsigned lop3(unsigned a, unsigned b, unsigned c) {
  static_assert(Table < 256, "a truth table of three inputs has eight bits");
  unsigned word = 0;
  for (unsigned row = 0; row < 8; ++row)
    if (Table >> row & 1) word |= (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
  return word;
}

}  // namespace ptx
