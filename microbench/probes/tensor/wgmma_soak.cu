// As wgmma_throughput, for seconds.
#include "wgmma_loop.cuh"

extern "C" __global__ void __launch_bounds__(MAX_THREADS, 1)
    wgmma_soak(const unsigned* a, const unsigned* b, int trips, float* out, long long* clocks) {
  wgmma_loop<N_COLUMNS, A_IN_REGISTERS, false>(a, b, trips, out, clocks);
}
