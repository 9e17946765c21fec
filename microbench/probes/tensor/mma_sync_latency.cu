// One warp, one accumulator: each mma.sync waits for the one before.
#include "mma_loop.cuh"

extern "C" __global__ void __launch_bounds__(32)
    mma_sync_latency(const unsigned* operands, int trips, float* out, long long* clocks) {
  mma_loop<TYPE, 1>(operands, trips, out, clocks);
}
