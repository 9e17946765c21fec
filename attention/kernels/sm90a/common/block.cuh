// A block of a kernel of this generation: its mbarriers, and who of its threads does what. One producer warpgroup fetches
// by TMA, two or three consumer warpgroups multiply by wgmma and keep the softmax in registers. Blocks are persistent:
// while consumers finish a tile of rows, the producer has the first keys of the next one under way. A second warp clears V
// behind the ends of sequences that lie in larger tensors, a third one fetches the rows of a mask for both blocks of a
// pair, or a fourth puts counters back where blocks share keys.
#pragma once
#include "config.cuh"
#include "produce.cuh"
#include "ptx/memory.cuh"
#include "ptx/setmaxnreg.cuh"
#include "shared_mask.cuh"
#include "take_rows.cuh"

__device__ __forceinline__ void run_block(const Launch& launch) {
  const Rooms at(ptx::shared_base());
  if constexpr (kPackGqa) clear_rows_of_nobody(at);
  if (threadIdx.x == 0) {
    for (int group = 0; group < kWarpgroups; ++group) {
      ptx::mbarrier_init(at.q_full + 8 * group, 1);
      ptx::mbarrier_init(at.q_empty + 8 * group, 4);
    }
    for (int stage = 0; stage < kStages; ++stage) {
      ptx::mbarrier_init(at.k_full + 8 * stage, 1);
      ptx::mbarrier_init(at.v_full + 8 * stage, 1);
      ptx::mbarrier_init(at.k_empty + 8 * stage, 4 * kWarpgroups * kReaders);
      ptx::mbarrier_init(at.v_empty + 8 * stage, 4 * kWarpgroups * kReaders);
      if (kOwnLengths) ptx::mbarrier_init(at.v_raw + 8 * stage, 1);
    }
    if (kBoxes && !kPair)
      for (int warp = 0; warp < 4 * kWarpgroups; ++warp) ptx::mbarrier_init(at.mask_full + 8 * warp, 1);
    if constexpr (kPair)
      for (int group = 0; group < kWarpgroups; ++group) {
        ptx::mbarrier_init(at.mask_full + 8 * group, 1);
        ptx::mbarrier_init(at.mask_empty + 8 * group, 2 * 4);
      }
    if constexpr (kTwoBlocks) {
      ptx::mbarrier_init(at.number_full, 1);
      ptx::mbarrier_init(at.number_empty, 1);
    }
    for (int slot = 0; slot < 2; ++slot) {
      ptx::mbarrier_init(at.tile_full + 8 * slot, 1);
      ptx::mbarrier_init(at.tile_empty + 8 * slot, 4 * kWarpgroups + kOwnLengths + kPair);
    }
    ptx::fence_mbarrier_init();
  }
  meet();

  if (threadIdx.x < 128) {
    ptx::setmaxnreg_decrease<kProducerRegisters>();
    // Lanes of a pair that do not fetch would wait at the end for the one that does. A warp that waits at two places asks an
    // mbarrier again and again, where one lane alone sleeps: up to 6 % of a masked call (H200, waiting_lanes.csv).
    if (kTwoBlocks && threadIdx.x % 32 != 0) return;
    if (threadIdx.x == 0) produce(launch, at);
    if (kOwnLengths && threadIdx.x / 32 == 1) clear(launch, at);
    if (kPair && threadIdx.x / 32 == 2) bring_masks(launch, at);
    if (kKeyParts && threadIdx.x / 32 == 3) Partials{launch}.put_all_back();
  } else {
    ptx::setmaxnreg_increase<kConsumerRegisters>();
    // Asked for anew: an address that lives through both roles is a register that consumers of pairs have not.
    consume(launch, kTwoBlocks ? Rooms(ptx::shared_base()) : at);
  }
  part_ways();
}
