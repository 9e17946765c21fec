// One warpgroup, one accumulator. WAIT_EACH: issue, commit and wait for every wgmma. Else: a chain through the
// accumulator, waited for once at its end.
#include "wgmma_loop.cuh"

extern "C" __global__ void __launch_bounds__(128, 1)
    wgmma_latency(const unsigned* a, const unsigned* b, int trips, float* out, long long* clocks) {
  wgmma_loop<N_COLUMNS, A_IN_REGISTERS, WAIT_EACH>(a, b, trips, out, clocks);
}
