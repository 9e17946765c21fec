#include "chain.cuh"
#include "ptx/math.cuh"

struct Ffma {
  __device__ float operator()(float x, float a, float b) { return ptx::ffma(x, a, b); }
};

extern "C" __global__ void ffma_latency(const float* in, float* out, long long* clocks) {
  chain_latency<Ffma, float, CHAIN>(in, out, clocks);
}
