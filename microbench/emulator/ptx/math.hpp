// The C++ bodies of cuda/ptx/math.cuh.
#pragma once

namespace ptx {

inline float ffma(float a, float b, float c) { return fmaf(a, b, c); }

// The SFU's result is within 2 units of the last place of this one (PTX ISA, 'ex2'); .ftz clears denormals.
inline float ex2(float x) {
  float y = exp2f(fabsf(x) < 0x1p-126f ? 0.f : x);
  return y < 0x1p-126f ? 0.f : y;
}

}  // namespace ptx
