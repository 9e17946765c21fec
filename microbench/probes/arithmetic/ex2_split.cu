// Eight chains of exponentials a warp, of which POLYNOMIAL are computed on the FMA pipes and the others by MUFU.EX2.
//
// 2^x = 2^n 2^f with n the nearest integer and f from -1/2 to 1/2 (Cody and Waite). What is added to 1.5 * 2^23 is
// rounded to an integer, which stands in the lowest bits: shifted by 23 it is what an exponent takes. The polynomial is
// minimax by relative error with 1 as its constant term: 1.0e-4, which a probability in 16 bits does not show.
#include "ptx/alu.cuh"
#include "ptx/math.cuh"
#include "timing.cuh"

constexpr int kChains = 8;

__device__ __forceinline__ float polynomial_ex2(float x) {
  constexpr float kToInteger = 12582912.f;
  x = fmaxf(x, -127.f);
  const float shifted = ptx::fadd(x, kToInteger), n = ptx::fadd(shifted, -kToInteger), f = ptx::fadd(x, -n);
  float p = ptx::ffma(0.05500893f, f, 0.24221097f);
  p = ptx::ffma(p, f, 0.69328290f);
  p = ptx::ffma(p, f, 1.f);
  return __uint_as_float(ptx::imad(__float_as_uint(shifted), 1u << 23, __float_as_uint(p)));
}

// Those that are polynomials stand apart: each scheduler finds either kind of work at any time.
__device__ __forceinline__ constexpr bool is_polynomial(int chain) {
  return chain * POLYNOMIAL / kChains != (chain + 1) * POLYNOMIAL / kChains;
}

// in: 64 floats, where a chain begins and how far it is from the next one. The sign turns at each step: a chain settles
// near 0.64, not at infinity. out: a row of every chain a block, for a sum of them would be one more FADD.
extern "C" __global__ void __launch_bounds__(THREADS)
    ex2_split(const float* in, int trips, float* out, long long* clocks) {
  const int lane = threadIdx.x % 32;
  float x[kChains];
#pragma unroll
  for (int i = 0; i < kChains; ++i) ptx::settle(x[i] = in[lane] + in[32 + lane] * (float)i);
  const long long start = ptx::clock64();
#pragma unroll 1
  for (int t = 0; t < trips; ++t) {
#pragma unroll
    for (int i = 0; i < PER_TRIP; ++i) {
      float& chain = x[i % kChains];
      chain = is_polynomial(i % kChains) ? polynomial_ex2(-chain) : ptx::ex2(-chain);
    }
  }
#pragma unroll
  for (int i = 0; i < kChains; ++i) ptx::settle(x[i]);
  const long long end = ptx::clock64();
#pragma unroll
  for (int i = 0; i < kChains; ++i) out[(blockIdx.x * kChains + i) * blockDim.x + threadIdx.x] = x[i];
  report(clocks, start, end);
}
