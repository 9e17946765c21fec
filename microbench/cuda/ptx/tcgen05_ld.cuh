// tcgen05.ld and tcgen05.st (sm_100a): a warp moves words between tensor memory and its registers. Warp w of the block
// reaches lanes 32 * (w % 4) to 32 * (w % 4) + 31 and no others; all threads give the same address. The number of
// registers, a power of two up to 128, is the length of the array; register i of thread t is, from the address on,
//   32x32b     lane t                                column i
//   16x64b     lane t / 4 + 8 * (t % 2)              column t / 2 % 2 + 2 * i
//   16x128b    lane t / 4 + 8 * (i % 2)              column t % 4 + 4 * (i / 2)                at least 2 registers
//   16x256b    lane t / 4 + 8 * (i / 2 % 2)          column 2 * (t % 4) + i % 2 + 8 * (i / 4)  at least 4
//   16x32bx2   lane t % 16                           column i + Split * (t / 16)
// (PTX ISA, 'Data movement shape'). A shape of 16 lanes starts at lane 0 or 16 of the warp's. 16x256b holds the
// accumulator fragments of mma.sync, 32x32b one row a thread, 16x32bx2 half a row: the upper threads' half begins
// `Split` columns behind the lower threads' (the ISA's immHalfSplitoff).
//
// Both are asynchronous: the registers may be used, and what was read be overwritten, after tcgen05_wait_ld; what was
// stored is there after tcgen05_wait_st. Against other threads and the tensor cores: see tcgen05_mma.cuh.
#pragma once

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/tcgen05_ld.hpp"
#else
#include "ptx/registers.cuh"

namespace ptx {

__device__ __forceinline__ void tcgen05_wait_ld() { asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void tcgen05_wait_st() { asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory"); }

// N registers, X times the shape.
#define PTX_TCGEN05_MOVE(SHAPE, N, X)                                                            \
  __device__ __forceinline__ void tcgen05_ld_##SHAPE(unsigned (&d)[N], unsigned address) {       \
    asm volatile("tcgen05.ld.sync.aligned." #SHAPE ".x" #X ".b32 {" PTX_TEXT(N) "}, [%" #N "];"  \
                 : PTX_OPERANDS(N, "=r")                                                         \
                 : "r"(address)                                                                  \
                 : "memory");                                                                    \
  }                                                                                              \
  __device__ __forceinline__ void tcgen05_st_##SHAPE(unsigned address, const unsigned (&d)[N]) { \
    asm volatile("tcgen05.st.sync.aligned." #SHAPE ".x" #X ".b32 [%" #N                          \
                 "], {" PTX_TEXT(N) "};" ::PTX_OPERANDS(N, "r"),                                 \
                 "r"(address)                                                                    \
                 : "memory");                                                                    \
  }

// From four registers on: how many times the shape each count is.
#define PTX_TCGEN05_MOVES(SHAPE, X4, X8, X16, X32, X64, X128) \
  PTX_TCGEN05_MOVE(SHAPE, 4, X4)                              \
  PTX_TCGEN05_MOVE(SHAPE, 8, X8)                              \
  PTX_TCGEN05_MOVE(SHAPE, 16, X16)                            \
  PTX_TCGEN05_MOVE(SHAPE, 32, X32)                            \
  PTX_TCGEN05_MOVE(SHAPE, 64, X64)                            \
  PTX_TCGEN05_MOVE(SHAPE, 128, X128)

PTX_TCGEN05_MOVE(32x32b, 1, 1)
PTX_TCGEN05_MOVE(32x32b, 2, 2)
PTX_TCGEN05_MOVES(32x32b, 4, 8, 16, 32, 64, 128)
PTX_TCGEN05_MOVE(16x64b, 1, 1)
PTX_TCGEN05_MOVE(16x64b, 2, 2)
PTX_TCGEN05_MOVES(16x64b, 4, 8, 16, 32, 64, 128)
PTX_TCGEN05_MOVE(16x128b, 2, 1)
PTX_TCGEN05_MOVES(16x128b, 2, 4, 8, 16, 32, 64)
PTX_TCGEN05_MOVES(16x256b, 1, 2, 4, 8, 16, 32)
#undef PTX_TCGEN05_MOVES
#undef PTX_TCGEN05_MOVE

// N registers; SPLIT is the number of the operand that follows theirs and the address.
#define PTX_TCGEN05_MOVE_HALVES(N, SPLIT)                                                                  \
  template <unsigned Split>                                                                                \
  __device__ __forceinline__ void tcgen05_ld_16x32bx2(unsigned (&d)[N], unsigned address) {                \
    asm volatile("tcgen05.ld.sync.aligned.16x32bx2.x" #N ".b32 {" PTX_TEXT(N) "}, [%" #N "], %" #SPLIT ";" \
                 : PTX_OPERANDS(N, "=r")                                                                   \
                 : "r"(address), "n"(Split)                                                                \
                 : "memory");                                                                              \
  }                                                                                                        \
  template <unsigned Split>                                                                                \
  __device__ __forceinline__ void tcgen05_st_16x32bx2(unsigned address, const unsigned (&d)[N]) {          \
    asm volatile("tcgen05.st.sync.aligned.16x32bx2.x" #N ".b32 [%" #N "], %" #SPLIT                        \
                 ", {" PTX_TEXT(N) "};" ::PTX_OPERANDS(N, "r"),                                            \
                 "r"(address), "n"(Split)                                                                  \
                 : "memory");                                                                              \
  }

PTX_TCGEN05_MOVE_HALVES(1, 2)
PTX_TCGEN05_MOVE_HALVES(2, 3)
PTX_TCGEN05_MOVE_HALVES(4, 5)
PTX_TCGEN05_MOVE_HALVES(8, 9)
PTX_TCGEN05_MOVE_HALVES(16, 17)
PTX_TCGEN05_MOVE_HALVES(32, 33)
PTX_TCGEN05_MOVE_HALVES(64, 65)
PTX_TCGEN05_MOVE_HALVES(128, 129)
#undef PTX_TCGEN05_MOVE_HALVES

}  // namespace ptx

#endif
