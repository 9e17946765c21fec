// The chase most published figures used: an index, i = a[i]. The address arithmetic of every step stands in the chain.
#include "ptx/memory.cuh"
#include "timing.cuh"

#define CHAIN 32

extern "C" __global__ void l1_index_latency(const int* ring, int warm, int trips, int* out, long long* clocks) {
  if (threadIdx.x) return;
  int index = 0;
  for (int i = 0; i < warm; ++i) index = ring[index];
  ptx::settle(index);
  long long start = ptx::clock64();
#pragma unroll 1
  for (int i = 0; i < trips; ++i) {
#pragma unroll
    for (int j = 0; j < CHAIN; ++j) index = ring[index];
  }
  ptx::settle(index);
  long long end = ptx::clock64();
  out[blockIdx.x] = index;
  report(clocks, start, end);
}
