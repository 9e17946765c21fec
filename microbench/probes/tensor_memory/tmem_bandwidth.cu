// Each warp moves ARRAYS times COUNT registers between its lanes of tensor memory and its threads. The second four warps
// have columns of their own. A word of each load is looked at, or ptxas would drop those that the next ones overwrite;
// looked at twice as it is, nothing is left of it.
#include "tensor_memory.cuh"
#include "timing.cuh"

#define JOIN2(A, B) A##B
#define JOIN(A, B) JOIN2(A, B)
constexpr int kHalf = kColumns / 2;

struct Words {
  unsigned of[ARRAYS][COUNT];

  __device__ __forceinline__ void load(unsigned from) {
#pragma unroll
    for (int i = 0; i < ARRAYS; ++i) ptx::JOIN(tcgen05_ld_, SHAPE)(of[i], from + i * COLUMNS);
    ptx::tcgen05_wait_ld();
  }

  __device__ __forceinline__ void store(unsigned to) const {
#pragma unroll
    for (int i = 0; i < ARRAYS; ++i) ptx::JOIN(tcgen05_st_, SHAPE)(to + i * COLUMNS, of[i]);
    ptx::tcgen05_wait_st();
  }
};

extern "C" __global__ void __launch_bounds__(256, 1)
    tmem_bandwidth(const unsigned* in, int trips, unsigned* out, long long* clocks) {
  const TensorMemory opened = open_tensor_memory(ptx::shared_base());
  const unsigned at = opened.mine() + TensorMemory::warp() / 4 * kHalf, seed = in[threadIdx.x];
  Words words;
#pragma unroll
  for (int i = 0; i < ARRAYS * COUNT; ++i) words.of[i / COUNT][i % COUNT] = seed * (2 * i + 1);
  words.store(at);
#pragma unroll
  for (int i = 0; i < ARRAYS * COUNT; ++i) {
    if (!STORES) words.of[i / COUNT][i % COUNT] = seed;
    ptx::settle(words.of[i / COUNT][i % COUNT]);
  }
  __syncthreads();

  const long long start = ptx::clock64();
  int t = 0;
  unsigned seen = 0;
#pragma unroll 1
  do {
#pragma unroll
    for (int i = 0; i < ROUNDS; ++i) {
      if (STORES) {
        words.store(at);
      } else {
        words.load(at);
#pragma unroll
        for (int j = 0; j < ARRAYS; ++j) seen ^= words.of[j][0];
      }
    }
  } while (++t < trips);
  ptx::settle(seen);
  ptx::settle(words.of[ARRAYS - 1][COUNT - 1]);
  const long long end = ptx::clock64();
  if (STORES) words.load(at);
  unsigned sum = seen;
#pragma unroll
  for (int i = 0; i < ARRAYS * COUNT; ++i) sum = sum * 3 + words.of[i / COUNT][i % COUNT];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
  report(clocks, start, end);
  opened.close();
}
