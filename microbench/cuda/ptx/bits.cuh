// Words cut and joined as single instructions.
#pragma once

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/bits.hpp"
#else

namespace ptx {

// PRMT: byte i of the result is byte s of {b, a}, 0 to 3 of a and 4 to 7 of b, where s is the lower three bits of
// nibble i of `selector`; with the nibble's top bit set, that byte's sign eight times.
__device__ __forceinline__ unsigned prmt(unsigned a, unsigned b, unsigned selector) {
  unsigned word;
  asm volatile("prmt.b32 %0, %1, %2, %3;" : "=r"(word) : "r"(a), "r"(b), "r"(selector));
  return word;
}

// LOP3: every bit by the truth table `Table`, which is the same expression of 0xF0, 0xCC and 0xAA: a & b ^ c is
// 0xF0 & 0xCC ^ 0xAA.
template <unsigned Table>
__device__ __forceinline__ unsigned lop3(unsigned a, unsigned b, unsigned c) {
  static_assert(Table < 256, "a truth table of three inputs has eight bits");
  unsigned word;
  asm volatile("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(word) : "r"(a), "r"(b), "r"(c), "n"(Table));
  return word;
}

}  // namespace ptx

#endif
