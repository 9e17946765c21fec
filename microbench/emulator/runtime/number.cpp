// Floating point of 4, 6, 8, 16 and 19 bits, as the conversions of PTX round it: to nearest, ties to even.
#include "emulator/runtime/number.hpp"

#include <array>
#include <cmath>

namespace emulator {

namespace {

float half_value(u16 bits) { return static_cast<float>(bits_as<_Float16>(bits)); }

u16 half_bits(float value) { return bits_as<u16>(static_cast<_Float16>(value)); }

// e4m3 has 4 bits of exponent, bias 7, and no infinity: the last code is the NaN. e5m2 is the upper half of an f16.
float fp8_value(u8 bits, Type type) {
  if (type == Type::e5m2) return half_value(static_cast<u16>(bits << 8));
  u32 exponent = bits >> 3 & 15, mantissa = bits & 7;
  if ((bits & 0x7F) == 0x7F) return f32_of(0x7FFFFFFF);
  float size = exponent ? f32_of((exponent + 127 - 7) << 23 | mantissa << 20) : static_cast<float>(mantissa) * 0x1p-9f;
  return bits & 0x80 ? -size : size;
}

using Table = std::array<float, 256>;
Table table_of(Type type) {
  Table table;
  for (u32 bits = 0; bits < 256; ++bits) table[bits] = fp8_value(static_cast<u8>(bits), type);
  return table;
}
const Table e4m3_values = table_of(Type::e4m3), e5m2_values = table_of(Type::e5m2);

// The scale 2^(bits - 127): no sign, no zero, the last code is the NaN (OCP Microscaling Formats 1.0, 'E8M0').
float ue8m0_value(u8 bits) {
  if (bits == 0xFF) return f32_of(0x7FFFFFFF);
  return bits ? f32_of(static_cast<u32>(bits) << 23) : 0x1p-127f;
}

// A sign, two bits of exponent, one of mantissa, no infinity and no NaN (the same, 'FP4').
constexpr float kE2m1Sizes[] = {0.f, 0.5f, 1.f, 1.5f, 2.f, 3.f, 4.f, 6.f};

// Six bits: a sign, `exponents` bits of exponent, the rest of mantissa, no infinity and no NaN (the same, 'FP6').
float fp6_value(u32 bits, u32 exponents) {
  u32 mantissas = 5 - exponents, exponent = (bits & 31) >> mantissas, mantissa = bits & ((1u << mantissas) - 1);
  int scale = static_cast<int>(exponent ? exponent : 1) - (1 << (exponents - 1)) + 1 - static_cast<int>(mantissas);
  float size = std::ldexp(static_cast<float>((exponent ? 1u << mantissas : 0u) | mantissa), scale);
  return bits & 32 ? -size : size;
}

// A float's size as an integer: its bits grow with it, so a mantissa cut to fewer bits rounds as an integer does.
u8 fp8_bits(float value, Type type) {
  u32 word = bits_of(value), size = word & 0x7FFFFFFF, sign = word >> 24 & 0x80;
  if (size > 0x7F800000) return 0x7F;  // every NaN becomes this one
  u32 kept = type == Type::e4m3 ? 3 : 2, bias = type == Type::e4m3 ? 7 : 15;
  u32 largest = type == Type::e4m3 ? 0x7E : 0x7B;
  u32 least_normal = (127 - bias + 1) << 23, code;
  if (size < least_normal) {
    // A multiple of the least denormal: adding 2^23 of those leaves the count in the mantissa, rounded to even.
    float one = f32_of((127 + 23 - bias + 1 - kept) << 23);
    code = bits_of(f32_of(size) + one) - bits_of(one);
  } else {
    u32 cut = 23 - kept, rounded = size + (1u << (cut - 1)) - 1 + (size >> cut & 1);
    code = (rounded >> cut) - ((127 - bias) << kept);
  }
  return static_cast<u8>(sign | (code < largest ? code : largest));
}

}  // namespace

float widen(u32 bits, Type type) {
  if (type == Type::f16) return half_value(static_cast<u16>(bits));
  if (type == Type::bf16) return f32_of(bits << 16);
  if (type == Type::tf32) return f32_of(bits & ~0x1FFFu);  // the lower 13 bits of its register are ignored
  if (type == Type::e4m3) return e4m3_values[bits & 0xFF];
  if (type == Type::e5m2) return e5m2_values[bits & 0xFF];
  if (type == Type::e2m1) return bits & 8 ? -kE2m1Sizes[bits & 7] : kE2m1Sizes[bits & 7];
  if (type == Type::e2m3) return fp6_value(bits, 2);
  if (type == Type::e3m2) return fp6_value(bits, 3);
  if (type == Type::ue8m0) return ue8m0_value(static_cast<u8>(bits));
  if (type == Type::ue4m3) return e4m3_values[bits & 0x7F];  // the sign is no part of it
  if (type == Type::s8) return static_cast<signed char>(bits);
  return static_cast<u8>(bits);
}

u16 narrow(float value, Type type) {
  if (type == Type::f16) return half_bits(value);
  if (type == Type::e4m3 || type == Type::e5m2) return fp8_bits(value, type);
  u32 word = bits_of(value);
  if ((word & 0x7FFFFFFF) > 0x7F800000) return 0x7FFF;  // cvt.rn.bf16 gives the one NaN
  return static_cast<u16>((word + 0x7FFF + (word >> 16 & 1)) >> 16);
}

}  // namespace emulator
