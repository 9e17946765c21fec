// Warps side by side on every SM, one cubin however many, with ILP accumulators each.
#include "mma_loop.cuh"

extern "C" __global__ void __launch_bounds__(MAX_THREADS)
    mma_sync_throughput(const unsigned* operands, int trips, float* out, long long* clocks) {
  mma_loop<Bf16, ILP>(operands, trips, out, clocks);
}
