// 16-bit floating point, as the conversions of PTX round it: to nearest, ties to even.
#include <cstring>

#include "emulator/api.hpp"

namespace emulator {

float widen(u16 bits, Type type) {
  if (type == Type::f16) {
    _Float16 half;
    std::memcpy(&half, &bits, sizeof half);
    return static_cast<float>(half);
  }
  u32 word = u32{bits} << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

u16 narrow(float value, Type type) {
  if (type == Type::f16) {
    auto half = static_cast<_Float16>(value);
    u16 bits;
    std::memcpy(&bits, &half, sizeof bits);
    return bits;
  }
  u32 word;
  std::memcpy(&word, &value, sizeof word);
  if ((word & 0x7FFFFFFF) > 0x7F800000) return 0x7FFF;  // cvt.rn.bf16 gives the one NaN
  return static_cast<u16>((word + 0x7FFF + (word >> 16 & 1)) >> 16);
}

}  // namespace emulator
