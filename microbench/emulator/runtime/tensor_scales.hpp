// The scale factors of a block-scaled product: four to a word of tensor memory, the same in each quarter of the lanes.
// Of B in a pair with 64 rows a block the halves of the columns have two quarters each, where their sums lie.
// cuda/ptx/tcgen05_descriptor.cuh states the layout ('Block Scaling' of the PTX ISA).
#pragma once
#include "emulator/runtime/tensor_instruction.hpp"
#include "emulator/runtime/tensor_memory.hpp"

namespace emulator {

struct Scales {
  u32 column, rows;  // the first column; how many rows of A, or columns of B, have factors in a block
  u32 byte, per_scale;
  Type type;
  u32 halves;  // that the lanes are divided into: 1, or 2

  Region region(u32 resident) const {
    return {resident, kAllGroups, column, (rows / halves + kQuarter - 1) / kQuarter};
  }

  // What element `k` of a row is multiplied by, as the work of this number reads it.
  float factor(u32 resident, u32 row, u32 k, u64 number) const;

  static constexpr u32 kQuarter = kLanes / 4;
};

}  // namespace emulator
