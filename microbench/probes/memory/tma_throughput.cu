// One thread keeps a ring of stages filled by TMA; nobody reads what arrives, so a stage that is full is filled anew at
// once. The map's boxes are BOX_ROWS rows of WIDTH bytes, and a stage holds HIGH of them below each other and as many
// side by side as make 128 bytes.
#include "ptx/elect.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/memory.cuh"
#include "ptx/tma.cuh"
#include "timing.cuh"

constexpr int kPanels = 128 / WIDTH, kRows = HIGH * BOX_ROWS;
constexpr unsigned kBoxBytes = BOX_ROWS * WIDTH, kStageBytes = kRows * 128;

// Load number `count` of this block: into the stage whose turn it is, from the chunk of rows whose turn it is.
__device__ __forceinline__ void fill(const ptx::TensorMap* map, unsigned base, unsigned bars, int count, int mask,
                                     int step) {
  const int stage = count % STAGES, row = ((blockIdx.x + count * step) & mask) * kRows;
  const unsigned full = bars + 8 * stage, to = base + stage * kStageBytes;
  ptx::mbarrier_arrive_expect(full, kStageBytes);
#pragma unroll
  for (int box = 0; box < HIGH * kPanels; ++box)
    ptx::tensor_load(to + box * kBoxBytes, map, full, box % kPanels * (WIDTH / 2), row + box / kPanels * BOX_ROWS);
}

// mask, step: of chunks of kRows rows. out: a word a thread, of what the last loads of all stages brought.
// Dynamic shared memory: the stages, an mbarrier for each, and 1024 bytes to align them.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    tma_throughput(const __grid_constant__ ptx::TensorMap map, int mask, int step, int trips, unsigned* out,
                   long long* clocks) {
  const unsigned base = (ptx::shared_base() + 1023) & ~1023u, bars = base + STAGES * kStageBytes;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) ptx::mbarrier_init(bars + 8 * stage, 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  if (__shfl_sync(~0u, static_cast<int>(threadIdx.x) / 32, 0) == 0) {
    if (ptx::elect_one()) {
#pragma unroll 1
      for (int stage = 0; stage < STAGES; ++stage) fill(&map, base, bars, stage, mask, step);
    }
    ptx::mbarrier_wait(bars, 0);
    __syncwarp();
    const long long start = ptx::clock64();
    if (ptx::elect_one()) {
#pragma unroll 1
      for (int t = 0; t < trips; ++t) {
        fill(&map, base, bars, t + STAGES, mask, step);
        ptx::mbarrier_wait(bars + 8 * ((t + 1) % STAGES), (t + 1) / STAGES % 2);
      }
    }
    __syncwarp();
    const long long end = ptx::clock64();
    report(clocks, start, end);
  }
  __syncthreads();
  unsigned sum = 0;
  for (int stage = 0; stage < STAGES; ++stage) {
    const int loads = (trips + 2 * STAGES - 1 - stage) / STAGES;  // of this stage
    ptx::mbarrier_wait(bars + 8 * stage, (loads - 1) % 2);
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < kStageBytes / 4; i += THREADS)
      sum = sum * 3 + ptx::load_shared(base + stage * kStageBytes + 4 * i);
  }
  out[blockIdx.x * THREADS + threadIdx.x] = sum;
}
