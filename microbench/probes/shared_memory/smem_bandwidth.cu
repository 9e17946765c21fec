// Every thread of a full SM loads its own WIDTH bytes, neighbours side by side: no bank conflict at any width.
#include "ptx/memory.cuh"
#include "timing.cuh"

__device__ __forceinline__ unsigned load(unsigned address) {
  if (WIDTH == 4) return ptx::load_shared(address);
  if (WIDTH == 8) {
    ptx::u64 v = ptx::load_shared2(address);
    return (unsigned)v ^ (unsigned)(v >> 32);
  }
  ptx::vec4 v = ptx::load_shared4(address);
  return v.x ^ v.y ^ v.z ^ v.w;
}

extern "C" __global__ void __launch_bounds__(THREADS) smem_bandwidth(int trips, unsigned* out, long long* clocks) {
  unsigned base = ptx::shared_base();
#pragma unroll 1
  for (int i = threadIdx.x; i < THREADS * WIDTH / 4; i += THREADS) ptx::store_shared(base + i * 4, i * 2654435761u);
  __syncthreads();
  unsigned mine = base + threadIdx.x * WIDTH;
  // All loads of the loop come to nothing by XOR; this one says whose words they are.
  unsigned sum = load(mine);
  ptx::settle(sum);
  long long start = ptx::clock64();
#pragma unroll 1
  for (int i = 0; i < trips; ++i) {
#pragma unroll
    for (int j = 0; j < FLIGHT; ++j) sum ^= load(mine);
  }
  ptx::settle(sum);
  long long end = ptx::clock64();
  out[blockIdx.x * THREADS + threadIdx.x] = sum;
  report(clocks, start, end);
}
