// Warpgroups side by side on every SM, one cubin however many: each with its own accumulator and as many wgmma in
// flight as the hardware takes.
#include "wgmma_loop.cuh"

extern "C" __global__ void __launch_bounds__(MAX_THREADS, 1)
    wgmma_throughput(const unsigned* a, const unsigned* b, int trips, float* out, long long* clocks) {
  wgmma_loop<N_COLUMNS, A_IN_REGISTERS, false>(a, b, trips, out, clocks);
}
