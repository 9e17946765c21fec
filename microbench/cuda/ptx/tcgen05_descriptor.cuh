// What a tcgen05.mma (sm_100a) is told of its matrices: the instruction descriptor, 32 bits that give types and shape,
// and the descriptor of a matrix in shared memory, 64 bits. Plain arithmetic, the same for the GPU and the emulator.
//
// Instruction descriptor of kind::f16, tf32, f8f6f4 and i8 (PTX ISA, 'Instruction descriptor'):
//   0-2    sparsity, 0 here          4-5    type of D: see Sum              7-9    type of A: see Operand
//   10-12  type of B                 13, 14 negate A, B                     15, 16 A, B is MN-major
//   17-22  N / 8                     24-28  M / 16                          30-31  shift of .ws, 0 here
// M is 64 or 128 with one block, 128 or 256 with a pair of blocks. N is a multiple of 16 up to 256, of 8 where M is 64;
// where B has 8 bits and is MN-major, and for integers beyond 32 columns or with a pair, of 16 for each block. K of one
// instruction is 32 bytes: 8 elements of tf32, 16 of 16 bits, 32 of 8, 64 of 4.
//
// The block-scaled kinds, whose neighbours in k share a scale factor, read some bits otherwise ('Instruction descriptor
// format for .kind::mxf8f6f4', '.kind::mxf4 and .kind::mxf4nvf4'):
//   4-5    which bytes of a word of tensor memory scale B        23     type of the scales: see Scale
//   29-30  which scale A                                         31     0: K = 64 of 4-bit elements; 1, 96 on sm_103a
// M is 128 with one block, 128 or 256 with a pair. N is a multiple of 8, with a pair of 16. 4-bit elements are K-major.
#pragma once
#include "ptx/matrix.cuh"

namespace ptx {

// Types of A and B. The kinds share numbers, and the instruction tells which is meant.
// e2m1 is that of the kinds of 4 bits, two to a byte; padded_e2m1 that of the kinds of 8, as are e2m3 and e3m2.
enum class Operand {
  f16 = 0,
  bf16 = 1,
  e4m3 = 0,
  e5m2 = 1,
  e2m3 = 3,
  e3m2 = 4,
  padded_e2m1 = 5,
  tf32 = 2,
  u8 = 0,
  s8 = 1,
  e2m1 = 1
};
enum class Sum { f32 = 1, s32 = 2 };        // s32 of kind::i8, f32 of all others
enum class Scale { ue4m3 = 0, ue8m0 = 1 };  // ue4m3 of kind::mxf4nvf4 alone

// A and B may differ in type where their kind has several.
__device__ __forceinline__ constexpr unsigned tcgen05_instruction(Operand a, Operand b, unsigned m, unsigned n,
                                                                  Major a_major = Major::K, Major b_major = Major::K,
                                                                  Sum sum = Sum::f32) {
  return static_cast<unsigned>(sum) << 4 | static_cast<unsigned>(a) << 7 | static_cast<unsigned>(b) << 10 |
         static_cast<unsigned>(a_major == Major::MN) << 15 | static_cast<unsigned>(b_major == Major::MN) << 16 |
         n >> 3 << 17 | m >> 4 << 24;
}

// Of the block-scaled kinds. The factors of 128 rows of A, or columns of B, take four columns of tensor memory: those of
// row r lie in lane r % 32, column r / 32, and in the same place of the other three quarters of the lanes ('Scale factors
// for A and B matrices need to be duplicated to all 32 lane partitions'). A word holds four: of mxf8, with one factor to
// an instruction, `a_byte` and `b_byte` say which; of mxf4, with two, 0 or 2 is the first one; of nvf4 they are 0.
//
// With M = 128 of a pair each block has the factors of its 64 rows of A in two columns, as above, and those of B by halves
// of its columns, as the sums lie: of the first half in the lower two quarters of the lanes, of the second half in the
// upper two. 'Matrix Shape' lists M = 128 for all scaled kinds; that B is divided CuTe says alone (tmem_sf_frg with
// ScaleFactorDuplicated2by2, which its traits take where M is 128), which itself has no such mxf8f6f4.
__device__ __forceinline__ constexpr unsigned tcgen05_scaled_instruction(Operand a, Operand b, unsigned m, unsigned n,
                                                                         Scale scale, unsigned a_byte = 0,
                                                                         unsigned b_byte = 0, Major a_major = Major::K,
                                                                         Major b_major = Major::K) {
  return b_byte << 4 | static_cast<unsigned>(a) << 7 | static_cast<unsigned>(b) << 10 |
         static_cast<unsigned>(a_major == Major::MN) << 15 | static_cast<unsigned>(b_major == Major::MN) << 16 |
         n >> 3 << 17 | static_cast<unsigned>(scale) << 23 | m >> 4 << 24 | a_byte << 29;
}

// Any matrix in shared memory. `swizzle` is the span in bytes: 0, 32, 64 or 128. Bits 0-13 address / 16; 16-29 leading
// offset / 16; 32-45 stride / 16; 46-48 the constant 1; 49-51 base offset, 0 for tiles at multiples of eight spans;
// 61-63 swizzle: 0 none, 2 of 128 bytes, 4 of 64, 6 of 32 (PTX ISA, 'Shared memory descriptor').
//
// With S the span and e the element in bytes, element (i, k), where i is the row of A or the column of B, lies before
// the swizzle at byte
//   K-major, swizzled     i % 8 * S + i / 8 * stride + e * k                                     leading unused
//   K-major, none         i % 8 * 16 + i / 8 * stride + e * k % 16 + e * k / 16 * leading
//   MN-major, swizzled    e * i % S + e * i / S * leading + k % 8 * S + k / 8 * stride
//   MN-major, none        e * i % 16 + e * i / 16 * stride + k % 8 * 16 + k / 8 * leading
// ('Canonical layouts'); the swizzle is that of wgmma: address bits 4 to 6 are xored with bits 7 to 9.
//
// Elements of 6 or 4 bits in a kind of 8 are K-major alone and count one byte each: sixteen lie packed in the first 12 or
// 8 of 16 bytes, the first in the lowest bits, and the rest is padding ('Packing format used for matrix A and B by
// .kind::mxf8f6f4 in Shared Memory'), which TMA leaves uninitialized ('.b6x16_p32', '.b4x16_p64').
__device__ __forceinline__ constexpr unsigned long long tcgen05_matrix(unsigned address, unsigned leading,
                                                                       unsigned stride, unsigned swizzle) {
  unsigned long long mode = swizzle == 128 ? 2 : swizzle == 64 ? 4 : swizzle == 32 ? 6 : 0;
  return mode << 61 | 1ull << 46 | static_cast<unsigned long long>(stride >> 4 & 0x3FFF) << 32 |
         static_cast<unsigned long long>(leading >> 4 & 0x3FFF) << 16 | (address & 0x3FFFF) >> 4;
}

// A K-major tile of 128-byte rows under the 128-byte swizzle, at a multiple of 1024 bytes: what TMA writes of a box 128
// bytes wide. Slice k of one instruction starts 32 bytes further on: add tcgen05_slice(k).
__device__ __forceinline__ constexpr unsigned long long tcgen05_tile(unsigned address) {
  return tcgen05_matrix(address, 16, 1024, 128);
}

__device__ __forceinline__ constexpr unsigned long long tcgen05_slice(int k) { return k * (32 >> 4); }

}  // namespace ptx
