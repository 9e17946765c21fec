// Multiply-adds on registers of their own, while the tensor cores multiply.
#include "ptx/math.cuh"
#include "wgmma_beside.cuh"

struct Ffma {
  __device__ float operator()(float x, float a, float b) { return ptx::ffma(x, a, b); }
};

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    wgmma_beside_ffma(const unsigned* a, const unsigned* b, const float* in, int product_trips, int other_trips,
                      float* sums, float* ends, long long* clocks) {
  wgmma_beside<Ffma, Where::WHERE, N_COLUMNS, A_IN_REGISTERS, PRODUCTS, RESULTS>(a, b, in, product_trips, other_trips,
                                                                                 sums, ends, clocks);
}
