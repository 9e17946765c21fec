// The C++ bodies of cuda/ptx/convert.cuh.
#pragma once

namespace ptx {

inline unsigned pack_as(float low, float high, emulator::Type type) {
  return emulator::narrow(low, type) | static_cast<unsigned>(emulator::narrow(high, type)) << 16;
}
inline unsigned pack_bf16(float low, float high) { return pack_as(low, high, emulator::Type::bf16); }
inline unsigned pack_f16(float low, float high) { return pack_as(low, high, emulator::Type::f16); }

}  // namespace ptx
