#include "chase.cuh"

extern "C" __global__ void l2_visible_size(ptx::u64* places, int warm_steps, int trips, long long* clocks) {
  chase<CHAIN>(places, warm_steps, trips, clocks);
}
