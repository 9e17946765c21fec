// Two warps hand a phase to and fro: each waits at its own mbarrier, then one of its lanes arrives at the other's. Both
// run one loop, and one of two warps always waits. All lanes wait, as the consumers of a pipeline do.
#include "ptx/elect.cuh"
#include "ptx/mbarrier_try.cuh"
#include "ptx/memory.cuh"
#include "timing.cuh"

// partner: the warp beside warp 0; others leave. out: two words a block, how often each of the two has waited.
extern "C" __global__ void __launch_bounds__(THREADS)
    mbarrier_handover_latency(int partner, int trips, int* out, long long* clocks) {
  const unsigned bars = ptx::shared_base();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(bars, 1), ptx::mbarrier_init(bars + 8, 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / 32, 0);
  if (warp != 0 && warp != partner) return;
  const bool second = warp != 0, arrives = ptx::elect_one();
  const unsigned mine = bars + 8 * second, other = bars + 8 * !second;
  if (!second && arrives) ptx::mbarrier_arrive(mine);
  __syncwarp();

  const long long start = ptx::clock64();
  int t = 0;
  bool more;
  // One try a trip, whose answer closes the loop: a loop in the loop would be a second branch. A no ends it early, which
  // the count shows. Nobody arrives before the answer: else ptxas has both in flight at once.
#pragma unroll 1
  do {
    const bool come = ptx::mbarrier_try(mine, t % 2);
    if (arrives & come) ptx::mbarrier_arrive(other);
    more = (++t < trips) & come;
  } while (more);
  const long long end = ptx::clock64();
  if (threadIdx.x % 32 == 0) out[2 * blockIdx.x + second] = t;
  report(clocks, t == trips ? start : 0, end);
}
