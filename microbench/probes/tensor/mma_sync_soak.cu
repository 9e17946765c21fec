// As mma_sync_throughput, for seconds.
#include "mma_loop.cuh"

extern "C" __global__ void __launch_bounds__(MAX_THREADS)
    mma_sync_soak(const unsigned* operands, int trips, float* out, long long* clocks) {
  mma_loop<Bf16, ILP>(operands, trips, out, clocks);
}
