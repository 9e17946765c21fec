// One warp. EXCHANGE: store, wait, load, wait, and one addition, so that no step repeats another. Else a chase: the word
// that is loaded is the address of the next load.
#include "tensor_memory.cuh"
#include "timing.cuh"

constexpr unsigned kRing = 256;  // columns of the chase

extern "C" __global__ void __launch_bounds__(32, 1) tmem_latency(const unsigned* in, unsigned* out, long long* clocks) {
  const TensorMemory opened = open_tensor_memory(ptx::shared_base());
#pragma unroll 1
  for (unsigned column = 0; column < kRing + COUNT; ++column) {
    const unsigned next[1] = {opened.memory + (column + COUNT) % kRing};
    ptx::tcgen05_st_32x32b(opened.memory + column, next);
  }
  ptx::tcgen05_wait_st();
  unsigned words[COUNT], at = opened.memory;
#pragma unroll
  for (int i = 0; i < COUNT; ++i) ptx::settle(words[i] = in[threadIdx.x] + i);
  ptx::settle(at);

  const long long start = ptx::clock64();
#pragma unroll
  for (int i = 0; i < CHAIN; ++i) {
    if (EXCHANGE) {
      ptx::tcgen05_st_32x32b(at, words);
      ptx::tcgen05_wait_st();
    }
    ptx::tcgen05_ld_32x32b(words, at);
    ptx::tcgen05_wait_ld();
    if (EXCHANGE)
      words[0] += 1;
    else
      at = words[0];
  }
  ptx::settle(words[0]);
  const long long end = ptx::clock64();
  unsigned sum = EXCHANGE ? 0 : at - opened.memory;
  if (EXCHANGE) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) sum = sum * 3 + words[i];
  }
  out[blockIdx.x * 32 + threadIdx.x] = sum;
  report(clocks, start, end);
  opened.close();
}
