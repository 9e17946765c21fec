// The C++ bodies of cuda/ptx/math_sm100.cuh.
#pragma once

namespace ptx {

inline float2 fadd2(float2 a, float2 b) { return {__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y)}; }
inline float2 fmul2(float2 a, float2 b) { return {__fmul_rn(a.x, b.x), __fmul_rn(a.y, b.y)}; }
inline float2 ffma2(float2 a, float2 b, float2 c) { return {fmaf(a.x, b.x, c.x), fmaf(a.y, b.y, c.y)}; }

inline float fmax3(float a, float b, float c) { return fmaxf(fmaxf(a, b), c); }
inline float fmin3(float a, float b, float c) { return fminf(fminf(a, b), c); }

}  // namespace ptx
