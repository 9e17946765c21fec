#include "chase.cuh"

extern "C" __global__ void memory_latency(ptx::u64* places, int warm_steps, int trips, long long* clocks) {
  chase<CHAIN>(places, warm_steps, trips, clocks);
}
