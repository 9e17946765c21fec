// The number formats of the tensor cores: how an element becomes a float, and what sums are kept in. Every element fits
// an f32 exactly, and so does every product of two. Of a byte with two e2m1 in it the lower four bits are widened.
#pragma once
#include <cstring>

#include "emulator/api.hpp"

namespace emulator {

constexpr u32 bits_in(Type type) {
  return type == Type::e2m1                         ? 4
         : type == Type::e2m3 || type == Type::e3m2 ? 6
         : type == Type::tf32                       ? 32
         : type == Type::f16 || type == Type::bf16  ? 16
                                                    : 8;
}
// In shared memory; fewer than 8 bits are packed, by rules of their kind.
constexpr u32 bytes_of(Type type) { return (bits_in(type) + 7) / 8; }

// Element `index` of registers that hold P to a word, the first in the lowest bits.
template <u32 P>
inline float element(const u32* words, u32 index, Type type) {
  return widen(words[index / P] >> index % P * (32 / P), type);
}

inline float f32_of(u32 word) { return bits_as<float>(word); }
inline u32 bits_of(float value) { return bits_as<u32>(value); }

// A sum of s32 with what an instruction adds to it: up to 32 products of 8 bits, exact in an f32.
inline u32 add_s32(u32 old, float more, Sums sums) {
  long long wide = static_cast<long long>(static_cast<int>(old)) + static_cast<long long>(more);
  constexpr long long kMost = 0x7FFFFFFF, kLeast = -kMost - 1;
  if (sums == Sums::s32_sat) wide = wide > kMost ? kMost : wide < kLeast ? kLeast : wide;
  return static_cast<u32>(wide);
}

}  // namespace emulator
