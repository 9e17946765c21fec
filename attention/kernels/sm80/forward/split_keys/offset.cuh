// What a part's p is counted from: in log2, or in units of scores where its rows ran a second time.
#pragma once
#include "online_softmax.cuh"

struct Offset {
  static constexpr unsigned kMark = 0x80000000u;
  float value;
  bool in_scores;

  // As it was left: the sign of the part's sum tells the unit.
  __device__ __forceinline__ static Offset of(unsigned value, unsigned sum) {
    return {__uint_as_float(value), (sum & kMark) != 0};
  }
  __device__ __forceinline__ unsigned marked(float sum) const { return __float_as_uint(sum) | (in_scores ? kMark : 0); }

  __device__ __forceinline__ bool is_none() const { return value == minus_infinity(); }
  __device__ __forceinline__ float in_log2(float scale_log2) const { return in_scores ? value * scale_log2 : value; }

  // What p counted from here is worth where it is counted from `most`. Differences are taken in one unit, before they
  // are scaled: of far rows what rounding would take away is more than p.
  __device__ __forceinline__ float against(const Offset& most, float scale_log2) const {
    if (is_none()) return 0.f;
    if (!in_scores && !most.in_scores) return ptx::ex2(value - most.value);
    const float mine = in_scores ? value : value / scale_log2;
    const float other = most.in_scores ? most.value : most.value / scale_log2;
    return ptx::ex2((mine - other) * scale_log2);
  }
};

__device__ __forceinline__ Offset larger(const Offset& one, const Offset& other, float scale_log2) {
  return other.in_log2(scale_log2) > one.in_log2(scale_log2) ? other : one;
}
