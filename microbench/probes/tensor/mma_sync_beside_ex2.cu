// Exponentials on registers of their own, beside mma.sync.
#include "mma_beside.cuh"
#include "ptx/math.cuh"

// The sign turns at each step (an operand modifier, no instruction): the value settles near 0.64, not at infinity.
struct Ex2 {
  __device__ float operator()(float x, float, float) { return ptx::ex2(-x); }
};

extern "C" __global__ void __launch_bounds__(THREADS)
    mma_sync_beside_ex2(const unsigned* operands, const float* in, int product_trips, int other_trips, float* sums,
                        float* ends, long long* clocks) {
  mma_beside<Ex2, Where::WHERE, PRODUCTS, RESULTS>(operands, in, product_trips, other_trips, sums, ends, clocks);
}
