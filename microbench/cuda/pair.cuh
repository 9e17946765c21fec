// Two f32 in two registers that one instruction works on: what a chain of f32x2 operations carries.
#pragma once
#include "ptx/clock.cuh"
#include "ptx/math_sm100.cuh"

struct Pair {
  float2 both;

  Pair() = default;
  __device__ __forceinline__ Pair(float2 given) : both(given) {}
  __device__ __forceinline__ explicit Pair(int number) : both{static_cast<float>(number), static_cast<float>(number)} {}
};

// Sums outside of the clock reads are of single instructions: none is taken for a timed one.
__device__ __forceinline__ Pair operator+(Pair a, Pair b) { return float2{a.both.x + b.both.x, a.both.y + b.both.y}; }
__device__ __forceinline__ Pair& operator+=(Pair& a, Pair b) { return a = a + b; }
__device__ __forceinline__ Pair operator*(Pair a, Pair b) { return float2{a.both.x * b.both.x, a.both.y * b.both.y}; }

// Found by ptx::settle. One instruction writes both, so that they arrive together.
__device__ __forceinline__ void settle_one(Pair pair) { ptx::settle(pair.both.x); }
