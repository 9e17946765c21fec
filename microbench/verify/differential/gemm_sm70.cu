// C = A B in the manner of sm70: m8n8k4, f16 in. A warp makes a tile of 16 x 16: quad pair q takes rows 8 (q % 2) and
// columns 8 (q / 2) of it. Tiles go through shared memory by ordinary loads and stores. `bug` plants one mistake.
#include "ptx/memory.cuh"
#include "ptx/mma_sm70.cuh"

enum Bug {
  NONE,
  MISSING_BARRIER,
  MISSING_BARRIER_BEFORE_REUSE,
  SWAPPED_LANES,
  SHARED_OUT_OF_BOUNDS,
  PLAIN_POINTER_OUT
};

#define A_ORDER ptx::Order::ORDER_A
#define B_ORDER ptx::Order::ORDER_B
#ifdef F16_SUMS
using Sums = unsigned[4];
#else
using Sums = float[8];
#endif

constexpr int kSlice = 16, kWarps = 4;  // elements of k a trip

__device__ __forceinline__ unsigned pair_at(const unsigned short* from) {
  return from[0] | static_cast<unsigned>(from[1]) << 16;
}

// A: rows x k, or k x rows where column-major; B: k x columns, or columns x k where column-major. C: row-major. A block
// of kWarps warps makes 16 rows and 16 * kWarps columns. All warps share the slice of A.
extern "C" __global__ void __launch_bounds__(32 * kWarps)
    gemm_sm70(const unsigned short* a, const unsigned short* b, float* c, int rows, int columns, int depth, int bug) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, half = lane / 16, t = lane % 4, pair = lane % 16 / 4;
  const int first_row = blockIdx.y * 16, first_column = (blockIdx.x * kWarps + warp) * 16;
  const int row = 8 * (pair % 2), column = 8 * (pair / 2);
  const unsigned slice = ptx::shared_base();
  Sums d = {};

  for (int k0 = 0; k0 < depth; k0 += kSlice) {
    // One word a thread: the slice of A, 16 x 16, in A's own order.
    const int line = threadIdx.x / 8, word = threadIdx.x % 8;
    const bool by_rows = A_ORDER == ptx::Order::row;
    const unsigned short* from = by_rows ? a + (first_row + line) * depth + k0 : a + (k0 + line) * rows + first_row;
    if (bug == PLAIN_POINTER_OUT && k0 + kSlice >= depth) from += rows * depth;
    ptx::store_shared(slice + threadIdx.x * 4 + (bug == SHARED_OUT_OF_BOUNDS) * 64, pair_at(from + 2 * word));
    if (bug != MISSING_BARRIER) __syncthreads();

    for (int k = 0; k < kSlice; k += 4) {
      unsigned fa[2], fb[2];
      for (int i = 0; i < 2; ++i) {
        const int r = by_rows ? row + t + 4 * half : row + 4 * half + 2 * i, q = by_rows ? k + 2 * i : k + t;
        fa[i] = ptx::load_shared(slice + (by_rows ? r * 32 + q * 2 : q * 32 + r * 2));
        const int n = first_column + column;
        fb[i] = B_ORDER == ptx::Order::col ? pair_at(b + (n + t + 4 * half) * depth + k0 + k + 2 * i)
                                           : pair_at(b + (k0 + k + t) * columns + n + 4 * half + 2 * i);
      }
      if (bug == SWAPPED_LANES) fa[0] = __shfl_xor_sync(~0u, fa[0], 1);
      ptx::mma_m8n8k4<A_ORDER, B_ORDER>(d, fa, fb);
    }
    if (bug != MISSING_BARRIER_BEFORE_REUSE) __syncthreads();
  }

  for (int i = 0; i < 8; ++i) {
#ifdef F16_SUMS
    // Bits of the f16, widened by the caller.
    const int r = t + 4 * half, n = i;
    const float value = static_cast<float>(d[i / 2] >> i % 2 * 16 & 0xFFFF);
#else
    const int r = (t & 1) + (i & 2) + 4 * half, n = (i & 4) + (t & 2) + (i & 1);
    const float value = d[i];
#endif
    c[(first_row + row + r) * columns + first_column + column + n] = value;
  }
}
