// One warp, CHAIN dependent operations in a straight line. No operation may hide a stale operand: none converges, none
// saturates, and none undoes the one before it.
#include "chain.cuh"

struct Ffma {
  __device__ float operator()(float x, float a, float b) {
    asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(x) : "f"(a), "f"(b));
    return x;
  }
};

struct Fadd {
  __device__ float operator()(float x, float a, float) {
    asm volatile("add.rn.f32 %0, %0, %1;" : "+f"(x) : "f"(a));
    return x;
  }
};

struct Imad {
  __device__ unsigned operator()(unsigned x, unsigned a, unsigned b) {
    asm volatile("mad.lo.u32 %0, %0, %1, %2;" : "+r"(x) : "r"(a), "r"(b));
    return x;
  }
};

extern "C" __global__ void fixed_latency(const TYPE* in, TYPE* out, long long* clocks) {
  chain_latency<OPERATION, TYPE, CHAIN>(in, out, clocks);
}
