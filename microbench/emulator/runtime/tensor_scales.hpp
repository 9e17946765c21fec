// The scale factors of a block-scaled product: four to a word of tensor memory, the same in each quarter of the lanes.
// cuda/ptx/tcgen05_descriptor.cuh states the layout ('Block Scaling' of the PTX ISA).
#pragma once
#include "emulator/runtime/tensor_instruction.hpp"
#include "emulator/runtime/tensor_memory.hpp"

namespace emulator {

struct Scales {
  u32 column, rows;  // the first column; how many rows of A, or columns of B, have factors in a block
  u32 byte, per_scale;
  Type type;

  Region region(u32 resident) const { return {resident, kAllGroups, column, (rows + kQuarter - 1) / kQuarter}; }

  // What element `k` of a row is multiplied by, as the work of this number reads it.
  float factor(u32 resident, u32 row, u32 k, u64 number) const;

  static constexpr u32 kQuarter = kLanes / 4;
};

}  // namespace emulator
