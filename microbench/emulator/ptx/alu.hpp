// The C++ bodies of cuda/ptx/alu.cuh.
#pragma once

namespace ptx {

inline float fadd(float a, float b) { return a + b; }
inline unsigned imad(unsigned a, unsigned b, unsigned c) { return a * b + c; }

}  // namespace ptx
