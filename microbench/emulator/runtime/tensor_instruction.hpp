// The instruction descriptor of tcgen05.mma, read: shape, types and scales, checked against what the PTX ISA allows.
// cuda/ptx/tcgen05_descriptor.cuh writes the bits out.
#pragma once
#include "emulator/runtime/number.hpp"

namespace emulator {

constexpr u32 kDepthBytes = 32;  // of a row of A or a column of B in one instruction

struct Instruction {
  u32 m, n;
  u32 bytes;   // of what a matrix in shared memory is made of: an element, or two e2m1 of the kinds of 4 bits
  u32 packed;  // elements in that
  Type a, b;
  bool a_mn, b_mn, a_negative, b_negative, integers;
  u32 per_scale;  // neighbours in k under one factor; 0 where nothing is scaled
  Type scale;
  u32 a_byte, b_byte;  // of a word: where its first factor lies

  u32 units() const { return kDepthBytes / bytes; }
  u32 depth() const { return units() * packed; }
  // Whether sixteen elements lie packed in the first bits of 16 bytes: of 6 or 4 bits in a kind of 8.
  bool padded(Type type) const { return packed == 1 && bits_in(type) < 8; }
  bool scaled() const { return per_scale != 0; }
};

const char* name_of(TensorKind kind);
Instruction read_instruction(u32 bits, TensorKind kind, u32 group);

}  // namespace emulator
