// Multiply-adds on registers of their own, beside mma.sync.
#include "mma_beside.cuh"
#include "ptx/math.cuh"

struct Ffma {
  __device__ float operator()(float x, float a, float b) { return ptx::ffma(x, a, b); }
};

extern "C" __global__ void __launch_bounds__(THREADS)
    mma_sync_beside_ffma(const unsigned* operands, const float* in, int product_trips, int other_trips, float* sums,
                         float* ends, long long* clocks) {
  mma_beside<Ffma, Where::WHERE, PRODUCTS, RESULTS>(operands, in, product_trips, other_trips, sums, ends, clocks);
}
