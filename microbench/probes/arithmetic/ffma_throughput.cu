#include "chain.cuh"
#include "ptx/math.cuh"

struct Ffma {
  __device__ float operator()(float x, float a, float b) { return ptx::ffma(x, a, b); }
};

extern "C" __global__ void __launch_bounds__(THREADS)
    ffma_throughput(const float* in, int trips, float* out, long long* clocks) {
  chain_throughput<Ffma, float, ILP, PER_TRIP>(in, trips, out, clocks);
}
