// WAYS lanes of every phase in the same bank. DEPENDENT: each lane's word holds its own address, so the chain of one
// warp gives the latency under the conflict; else a full SM of independent loads gives the interval at which the pipe
// takes them.
#include "ptx/memory.cuh"
#include "timing.cuh"

#define ROW 128                       // 32 banks of 4 bytes
#define PHASE_LANES (ROW / WIDTH)     // a warp's 8- and 16-byte accesses go in two and four phases of 16 and 8 lanes
#define COLUMNS (PHASE_LANES / WAYS)  // distinct places in a row that the lanes of one phase share

struct words {
  unsigned first, others;
};

// All words of the access stay alive, or ptxas narrows it; the first is the next address.
__device__ __forceinline__ words load(unsigned address) {
  if (WIDTH == 4) return {ptx::load_shared(address), 0};
  if (WIDTH == 8) {
    ptx::u64 v = ptx::load_shared2(address);
    return {(unsigned)v, (unsigned)(v >> 32)};
  }
  ptx::vec4 v = ptx::load_shared4(address);
  return {v.x, v.y ^ v.z ^ v.w};
}

extern "C" __global__ void __launch_bounds__(THREADS) smem_bank_conflicts(int trips, unsigned* out, long long* clocks) {
  unsigned lane = threadIdx.x % 32;
  unsigned address = ptx::shared_base() + (lane % COLUMNS) * WIDTH + (lane / COLUMNS) * ROW;
  for (int i = 0; i < WIDTH / 4; ++i) ptx::store_shared(address + i * 4, address);
  __syncthreads();
  unsigned at = address, sum = 0;
  ptx::settle(at);
  long long start = ptx::clock64();
#pragma unroll 1
  for (int i = 0; i < trips; ++i) {
#pragma unroll
    for (int j = 0; j < CHAIN; ++j) {
      words loaded = load(DEPENDENT ? at : address);
      if (DEPENDENT) at = loaded.first;
      sum ^= DEPENDENT ? loaded.others : loaded.first ^ loaded.others;
    }
  }
  ptx::settle(at);
  ptx::settle(sum);
  long long end = ptx::clock64();
  out[blockIdx.x * THREADS + threadIdx.x] = at ^ sum;
  report(clocks, start, end);
}
