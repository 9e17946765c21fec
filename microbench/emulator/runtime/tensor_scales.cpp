#include "emulator/runtime/tensor_scales.hpp"

namespace emulator {

float Scales::factor(u32 resident, u32 row, u32 k, u64 number) const {
  const u32 share = rows / halves, lanes = kLanes / halves, first = row / share * lanes, within = row % share;
  const u32 lane = first + within % kQuarter, at = column + within / kQuarter;
  const u32 word = tensor_word(resident, lane, at, number);
  for (u32 other = lane + kQuarter; other < first + lanes; other += kQuarter)
    if (tensor_word(resident, other, at, number) != word)
      fail("tcgen05.mma: the scales of lane ", lane, " are not those of lane ", other, " in column ", at,
           ": each quarter of the lanes has a copy of them");
  return widen(word >> (byte + k / per_scale) * 8 & 0xFF, type);
}

}  // namespace emulator
