// The C++ bodies of cuda/ptx/convert.cuh.
#pragma once

namespace ptx {

inline unsigned pack_as(float low, float high, emulator::Type type) {
  return emulator::narrow(low, type) | static_cast<unsigned>(emulator::narrow(high, type)) << 16;
}
inline unsigned pack_bf16(float low, float high) { return pack_as(low, high, emulator::Type::bf16); }
inline unsigned pack_f16(float low, float high) { return pack_as(low, high, emulator::Type::f16); }

inline float2 unpack_f16(unsigned word) {
  return {emulator::widen(word & 0xFFFF, emulator::Type::f16), emulator::widen(word >> 16, emulator::Type::f16)};
}
inline float2 unpack_bf16(unsigned word) { return {__uint_as_float(word << 16), __uint_as_float(word & 0xFFFF0000)}; }

// As ptxas writes it out for sm_90a: half of the last place is added to the size, so that ties go away from zero; what
// is no finite number is only cut.
inline unsigned round_tf32(float x) {
  unsigned word = __float_as_uint(x);
  if ((word & 0x7FFFFFFF) > 0x7F800000) return 0x7FFFFFFF;  // NaN, whatever its lower bits are
  if ((word & 0x7FFFFFFF) < 0x7F800000) word += 0x1000;
  return word & ~0x1FFFu;
}

#define PTX_FP8(TYPE)                                                                         \
  inline unsigned short pack_##TYPE(float low, float high) {                                  \
    return static_cast<unsigned short>(emulator::narrow(low, emulator::Type::TYPE) |          \
                                       emulator::narrow(high, emulator::Type::TYPE) << 8);    \
  }                                                                                           \
  inline unsigned short f16x2_to_##TYPE(unsigned f16x2) {                                     \
    float2 v = unpack_f16(f16x2);                                                             \
    return pack_##TYPE(v.x, v.y);                                                             \
  }                                                                                           \
  inline unsigned TYPE##_to_f16x2(unsigned short pair) {                                      \
    return pack_f16(emulator::widen(pair & 0xFFu, emulator::Type::TYPE),                      \
                    emulator::widen(static_cast<unsigned>(pair) >> 8, emulator::Type::TYPE)); \
  }

PTX_FP8(e4m3)
PTX_FP8(e5m2)
#undef PTX_FP8

}  // namespace ptx
