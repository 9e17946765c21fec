// Fragments of Q, K and V from shared memory, and their products.
//
// One ldmatrix.x4 fetches 16 rows by 16 columns as four matrices of 8 x 8, and mma m16n8k8 takes two of Q or p, and one of
// K or V. An accumulator of eight keys lies as the operand of p V for these keys does: p needs no exchange.
#pragma once
#include "config.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/mma_sync.cuh"

// Where a lane reads first. Matrices count down the rows first (Q and V), or across the columns first (K).
__device__ __forceinline__ unsigned lane_address(bool rows_first) {
  const int lane = threadIdx.x % 32;
  const int lower = lane / 8 % 2, upper = lane / 16;
  return (lane % 8 + 8 * (rows_first ? lower : upper)) * kPitch + 16 * (rows_first ? upper : lower);
}

// d += a b for the product's K and N of eight.
__device__ __forceinline__ void multiply(float* d, unsigned upper, unsigned lower, unsigned b) {
  float (&sums)[4] = *reinterpret_cast<float (*)[4]>(d);
  const unsigned rows[2] = {upper, lower}, columns[1] = {b};
  ptx::mma_m16n8k8_f16(sums, rows, columns);
}
