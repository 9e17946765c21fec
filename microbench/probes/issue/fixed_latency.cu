// One warp, CHAIN dependent operations in a straight line. No operation may hide a stale operand: none converges, none
// saturates, and none undoes the one before it.
#include "chain.cuh"
#include "ptx/alu.cuh"
#include "ptx/math.cuh"

struct Ffma {
  __device__ float operator()(float x, float a, float b) { return ptx::ffma(x, a, b); }
};

struct Fadd {
  __device__ float operator()(float x, float a, float) { return ptx::fadd(x, a); }
};

struct Imad {
  __device__ unsigned operator()(unsigned x, unsigned a, unsigned b) { return ptx::imad(x, a, b); }
};

extern "C" __global__ void fixed_latency(const TYPE* in, TYPE* out, long long* clocks) {
  chain_latency<OPERATION, TYPE, CHAIN>(in, out, clocks);
}
