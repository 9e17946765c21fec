// One thread chases a ring that begins where the host put it: up to which size does it hit the L1?
#include "clocks.cuh"

extern "C" __global__ void chase(u64* place, int warm, int trips, long long* clocks) {
  if (threadIdx.x) return;
  u64 p = *place;
  for (int i = 0; i < warm; ++i) asm volatile("ld.global.u64 %0, [%0];" : "+l"(p)::"memory");
  long long start = now();
#pragma unroll 1
  for (int t = 0; t < trips; ++t)
#pragma unroll
    for (int i = 0; i < 32; ++i) asm volatile("ld.global.u64 %0, [%0];" : "+l"(p)::"memory");
  *place = p;
  leave(clocks, start);
}
