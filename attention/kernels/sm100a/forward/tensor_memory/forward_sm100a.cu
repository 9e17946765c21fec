// Attention forward for sm100a and sm103a: scores, P and outputs live in tensor memory, and every role has its warps.
// One loads by TMA, one multiplies by tcgen05.mma, a warpgroup for each tile of 128 query rows computes the softmax, one
// corrects outputs, one warp writes them. Blocks are persistent: while a tile of rows is finished, the products of the
// next one have begun. One more warp clears V behind the ends of sequences that lie in larger tensors. Two blocks of a
// cluster may work as a pair, which shares each tile of K and V.
#include "clear.cuh"
#include "correct.cuh"
#include "load.cuh"
#include "multiply.cuh"
#include "ptx/setmaxnreg.cuh"
#include "relay.cuh"
#include "softmax.cuh"
#include "write.cuh"

__device__ __forceinline__ void init(unsigned bars, int count, unsigned arrivals) {
  for (int i = 0; i < count; ++i) ptx::mbarrier_init(bars + 8 * i, arrivals);
}

__device__ __forceinline__ void init_barriers(const Rooms& at) {
  init(at.q_full, kQueryTiles, 1 + relays());
  init(at.q_empty, kQueryTiles, 1);
  init(at.kv_full, kStages, 1 + relays());
  init(at.kv_empty, kStages, 1);
  if (kOwnLengths) init(at.kv_raw, kStages, 1);
  init(at.s_full, 2, 1);
  init(at.factor_full, 2, 4);
  init(at.ready, 2, kGroup * (4 + 4));
  init(at.o_full, kQueryTiles, 1);
  init(at.sum_full, kQueryTiles, 4);
  init(at.sum_empty, kQueryTiles, 4);
  init(at.piece_full, 2, 4);
  init(at.piece_empty, 2, 1);
  init(at.tile_full, 2, 1);
  init(at.tile_empty, 2, kSoftmaxWarps + 4 + 2 + kOwnLengths);
  ptx::fence_mbarrier_init();
}

// From one lane to all: ptxas keeps what follows from it in uniform registers. Asked for anew where it is needed: what
// lives through all roles is a register that each of them lacks.
__device__ __forceinline__ int warp_number() { return __shfl_sync(~0u, static_cast<int>(threadIdx.x) / 32, 0); }

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    attention_forward_sm100a(const __grid_constant__ Launch launch) {
  const Rooms at(ptx::shared_base());
  const int first = warp_number();
  if (first == kLoader && ptx::elect_one()) init_barriers(at);
  if (first == kIssuer) {
    ptx::tcgen05_alloc<kGroup>(at.tensor_memory, kColumns);
    ptx::tcgen05_relinquish<kGroup>();
  }
  meet();
  const unsigned memory = ptx::load_shared(at.tensor_memory);

  const int warp = warp_number();
  if (warp < kSoftmaxWarps) {
    ptx::setmaxnreg_increase<kSoftmaxRegisters>();
    soften(launch, at, memory);
  } else if (warp < kIssuer) {
    ptx::setmaxnreg_decrease<kCorrectionRegisters>();
    correct(launch, at, memory);
  } else {
    ptx::setmaxnreg_decrease<kOtherRegisters>();
    if (warp == kIssuer) {
      if (issues())
        multiply(launch, at, memory);
      else
        relay(launch, at);
    } else if (warp == kLoader) {
      if (ptx::elect_one()) load(launch, at);
      __syncwarp();
    } else if (warp == kWriter) {
      write(launch, at);
    } else if (kOwnLengths) {
      clear(launch, at);
    }
  }
  meet();
  if (warp_number() == kIssuer) ptx::tcgen05_dealloc<kGroup>(ptx::load_shared(at.tensor_memory), kColumns);
}
