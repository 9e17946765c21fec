// The loop of the probe l2_bandwidth, each block starting at a chunk of its group: who reads together with whom?
#include "clocks.cuh"

template <int Flight>
__device__ __forceinline__ void stream(u64 base, int mask, int step, int groups, int spread, int trips, u32* out) {
  u64 mine = base + threadIdx.x * 16;
  u32 sum = 0;
  int chunk = blockIdx.x % groups * spread;
#pragma unroll 1
  for (int i = 0; i < trips; ++i) {
    u64 at = mine + (u64)((chunk & mask) * (1024 * 16 * Flight));
    chunk += step;
    u32 v[Flight][4];
#pragma unroll
    for (int j = 0; j < Flight; ++j)
      asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                   : "=r"(v[j][0]), "=r"(v[j][1]), "=r"(v[j][2]), "=r"(v[j][3])
                   : "l"(at + j * 16384)
                   : "memory");
#pragma unroll
    for (int j = 0; j < Flight; ++j) sum ^= v[j][0] ^ v[j][1] ^ v[j][2] ^ v[j][3];
  }
  out[blockIdx.x * 1024 + threadIdx.x] = sum;
}

#define KERNEL(flight)                                                                         \
  extern "C" __global__ void __launch_bounds__(1024)                                           \
      l2_##flight(u64 base, int mask, int step, int groups, int spread, int trips, u32* out) { \
    stream<flight>(base, mask, step, groups, spread, trips, out);                              \
  }
KERNEL(2) KERNEL(4)
