// One tile through each tensor-core wrapper, written out by the layout that its header states.
#include "mma_loop.cuh"
#include "wgmma_loop.cuh"

// What a wrong `accumulate` or a row that was never written would leave behind.
#define POISON __int_as_float(0x7fffffff)

#ifdef N_COLUMNS
// d (64 x N_COLUMNS, row-major) = a (64 x 64) times the transpose of b (N_COLUMNS x 64): four slices of k16.
extern "C" __global__ void __launch_bounds__(128, 1) wgmma_tile(const unsigned* a, const unsigned* b, float* d) {
  unsigned b_tile = (ptx::shared_base() + 1023) & ~1023u, a_tile = b_tile + N_COLUMNS * ROW_BYTES;
  fill_tile(b_tile, b, N_COLUMNS);
  fill_tile(a_tile, a, A_ROWS);
  ptx::fence_proxy_async();
  float acc[N_COLUMNS / 2];
  unsigned fragments[4][4];
#pragma unroll
  for (int k = 0; k < 4; ++k) load_fragment(fragments[k], a, k);
#pragma unroll
  for (int i = 0; i < N_COLUMNS / 2; ++i) acc[i] = POISON;
  __syncthreads();
  ptx::u64 da = ptx::wgmma_descriptor(a_tile), db = ptx::wgmma_descriptor(b_tile);
  ptx::wgmma_fence();
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (A_IN_REGISTERS)
      ptx::WGMMA_RS(acc, fragments[k], db + ptx::wgmma_slice(k), k > 0);
    else
      ptx::WGMMA_SS(acc, da + ptx::wgmma_slice(k), db + ptx::wgmma_slice(k), k > 0);
  }
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
  int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4;
#pragma unroll
  for (int i = 0; i < N_COLUMNS / 2; ++i) {
    int column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    d[(row + i % 4 / 2 * 8) * N_COLUMNS + column] = acc[i];
  }
}
#else
// d (16 x 8, row-major) = a (16 x 64) times the transpose of b (8 x 64): four slices of k16.
extern "C" __global__ void __launch_bounds__(32) mma_tile(const unsigned* a, const unsigned* b, float* d) {
  int row = threadIdx.x / 4, word = threadIdx.x % 4;
  float acc[4] = {0.f, 0.f, 0.f, 0.f};
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    unsigned fa[4], fb[2];
    load_fragment(fa, a, k);
#pragma unroll
    for (int r = 0; r < 2; ++r) fb[r] = b[row * (ROW_BYTES / 4) + 8 * k + word + r * 4];
    ptx::MMA(acc, fa, fb);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) d[(row + i / 2 * 8) * 8 + 2 * word + i % 2] = acc[i];
}
#endif
