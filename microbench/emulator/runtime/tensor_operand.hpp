// Where an operand of the tensor cores lies: a descriptor of shared memory, read and checked, or an address of tensor
// memory.
#pragma once
#include "emulator/runtime/matrix.hpp"

namespace emulator {

// `bytes`: of an element.
inline Matrix read_matrix(u64 bits, u32 bytes, bool mn_major, const char* what) {
  static const int spans[] = {0, -1, 128, -1, 64, -1, 32, -1};
  auto field = [bits](u32 shift) { return static_cast<u32>(bits >> shift & 0x3FFF) << 4; };
  std::string says = std::string(what) + ": matrix descriptor " + hex(bits) + ": ";
  if ((bits >> 46 & 7) != 1) fail(says, "bits 46 to 48 are the constant 1; the descriptor of wgmma is another one");
  if (bits >> 49 & 15) fail(says, "a base offset or an absolute leading offset is not modelled");
  if (spans[bits >> 61] < 0) fail(says, "its swizzle is not modelled");
  const u32 span = static_cast<u32>(spans[bits >> 61]);
  require_pattern_start(field(0), span, says);
  return {field(0) | window(), field(16), field(32), span, bytes, mn_major};
}

// The matrix at the same offset of another block's shared memory.
inline Matrix in_resident(Matrix matrix, u32 resident) {
  matrix.start = in_block(matrix.start, resident);
  return matrix;
}

inline u32 first_column(u32 address, const char* what) {
  if (address >> 16) fail(what, ": tensor memory address ", hex(address), " does not begin at lane 0");
  return address;
}

}  // namespace emulator
