// Q times the softmax scale, where that is a power of two: scores are then in units of a mask's floats, which need no
// multiplication of their own. Once a tile of rows, by the warpgroup whose rows they are.
#pragma once
#include "config.cuh"
#include "ptx/convert.cuh"
#include "ptx/memory.cuh"

constexpr float kLog2E = 1.44269504f;

// The one that x is nearly.
__device__ __forceinline__ float power_of_two(float x) {
  return __uint_as_float(__float_as_uint(1.25f * x) & 0xff800000u);
}

__device__ __forceinline__ unsigned scaled(unsigned word, float scale) {
  const float2 two = kBf16 ? ptx::unpack_bf16(word) : ptx::unpack_f16(word);
  return kBf16 ? ptx::pack_bf16(two.x * scale, two.y * scale) : ptx::pack_f16(two.x * scale, two.y * scale);
}

// By 128 threads.
__device__ __forceinline__ void scale_rows(unsigned rows, int bytes, float scale) {
#pragma unroll 4
  for (int at = threadIdx.x % 128 * 16; at < bytes; at += 128 * 16) {
    const ptx::vec4 words = ptx::load_shared4(rows + at);
    ptx::store_shared4(
        rows + at, {scaled(words.x, scale), scaled(words.y, scale), scaled(words.z, scale), scaled(words.w, scale)});
  }
}
