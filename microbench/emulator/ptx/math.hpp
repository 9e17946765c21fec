// The C++ bodies of cuda/ptx/math.cuh. Approximations are the exact value rounded once: the GPU's lie within the errors
// that the header states.
#pragma once

namespace ptx {

inline float ffma(float a, float b, float c) { return fmaf(a, b, c); }

// The SFU's result is within 2 units of the last place of this one (PTX ISA, 'ex2'); .ftz clears denormals.
inline float ex2(float x) {
  float y = exp2f(fabsf(x) < 0x1p-126f ? 0.f : x);
  return y < 0x1p-126f ? 0.f : y;
}

inline float max_nan(float a, float b) { return isnan(a) || isnan(b) ? __builtin_nanf("") : fmaxf(a, b); }

inline float tanh(float x) { return tanhf(x); }

// `function` of both halves of a word.
template <class Function>
inline unsigned of_both(unsigned x, emulator::Type type, Function function) {
  return emulator::narrow(function(emulator::widen(x & 0xFFFF, type)), type) |
         static_cast<unsigned>(emulator::narrow(function(emulator::widen(x >> 16, type)), type)) << 16;
}
inline unsigned ex2_f16x2(unsigned x) { return of_both(x, emulator::Type::f16, exp2f); }
inline unsigned ex2_bf16x2(unsigned x) { return of_both(x, emulator::Type::bf16, ex2); }
inline unsigned tanh_f16x2(unsigned x) { return of_both(x, emulator::Type::f16, tanhf); }
inline unsigned tanh_bf16x2(unsigned x) { return of_both(x, emulator::Type::bf16, tanhf); }

}  // namespace ptx
