// tcgen05.ld and tcgen05.st (sm_100a): a warp moves words between tensor memory and its registers. Warp w of the block
// reaches lanes 32 * (w % 4) to 32 * (w % 4) + 31 and no others; all threads give the same address. The number of
// registers, a power of two up to 128, is the length of the array; register i of thread t is, from the address on,
//   32x32b     lane t                                column i
//   16x64b     lane t / 4 + 8 * (t % 2)              column t / 2 % 2 + 2 * i
//   16x128b    lane t / 4 + 8 * (i % 2)              column t % 4 + 4 * (i / 2)                at least 2 registers
//   16x256b    lane t / 4 + 8 * (i / 2 % 2)          column 2 * (t % 4) + i % 2 + 8 * (i / 4)  at least 4
// (PTX ISA, 'Data movement shape'). A shape of 16 lanes starts at lane 0 or 16 of the warp's. 16x256b holds the
// accumulator fragments of mma.sync, 32x32b one row a thread.
//
// Both are asynchronous: the registers may be used, and what was read be overwritten, after tcgen05_wait_ld; what was
// stored is there after tcgen05_wait_st. Against other threads and the tensor cores: see tcgen05_mma.cuh.
#pragma once

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/tcgen05_ld.hpp"
#else

namespace ptx {

__device__ __forceinline__ void tcgen05_wait_ld() { asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void tcgen05_wait_st() { asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory"); }

// The registers as text and as operands, written out once: inline PTX takes no loop. Each list begins with the one
// before.
#define PTX_T1 "%0"
#define PTX_T2 PTX_T1 ", %1"
#define PTX_T4 PTX_T2 ", %2, %3"
#define PTX_T8 PTX_T4 ", %4, %5, %6, %7"
#define PTX_T16 PTX_T8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define PTX_T32 PTX_T16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define PTX_T48 PTX_T32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define PTX_T64 PTX_T48 ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define PTX_T80 PTX_T64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define PTX_T96 PTX_T80 ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define PTX_T112 PTX_T96 ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define PTX_T128 \
  PTX_T112 ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

#define PTX_W1(C, i) C(d[i])
#define PTX_W2(C, i) PTX_W1(C, i), PTX_W1(C, i + 1)
#define PTX_W4(C, i) PTX_W2(C, i), PTX_W2(C, i + 2)
#define PTX_W8(C, i) PTX_W4(C, i), PTX_W4(C, i + 4)
#define PTX_W16(C, i) PTX_W8(C, i), PTX_W8(C, i + 8)
#define PTX_W32(C, i) PTX_W16(C, i), PTX_W16(C, i + 16)
#define PTX_W64(C, i) PTX_W32(C, i), PTX_W32(C, i + 32)
#define PTX_W128(C, i) PTX_W64(C, i), PTX_W64(C, i + 64)

// N registers, X times the shape.
#define PTX_TCGEN05_MOVE(SHAPE, N, X)                                                                            \
  __device__ __forceinline__ void tcgen05_ld_##SHAPE(unsigned (&d)[N], unsigned address) {                       \
    asm volatile("tcgen05.ld.sync.aligned." #SHAPE ".x" #X ".b32 {" PTX_T##N "}, [%" #N "];"                     \
                 : PTX_W##N("=r", 0)                                                                             \
                 : "r"(address)                                                                                  \
                 : "memory");                                                                                    \
  }                                                                                                              \
  __device__ __forceinline__ void tcgen05_st_##SHAPE(unsigned address, const unsigned (&d)[N]) {                 \
    asm volatile("tcgen05.st.sync.aligned." #SHAPE ".x" #X ".b32 [%" #N "], {" PTX_T##N "};" ::PTX_W##N("r", 0), \
                 "r"(address)                                                                                    \
                 : "memory");                                                                                    \
  }

PTX_TCGEN05_MOVE(32x32b, 1, 1)
PTX_TCGEN05_MOVE(32x32b, 2, 2)
PTX_TCGEN05_MOVE(32x32b, 4, 4)
PTX_TCGEN05_MOVE(32x32b, 8, 8)
PTX_TCGEN05_MOVE(32x32b, 16, 16)
PTX_TCGEN05_MOVE(32x32b, 32, 32)
PTX_TCGEN05_MOVE(32x32b, 64, 64)
PTX_TCGEN05_MOVE(32x32b, 128, 128)

PTX_TCGEN05_MOVE(16x64b, 1, 1)
PTX_TCGEN05_MOVE(16x64b, 2, 2)
PTX_TCGEN05_MOVE(16x64b, 4, 4)
PTX_TCGEN05_MOVE(16x64b, 8, 8)
PTX_TCGEN05_MOVE(16x64b, 16, 16)
PTX_TCGEN05_MOVE(16x64b, 32, 32)
PTX_TCGEN05_MOVE(16x64b, 64, 64)
PTX_TCGEN05_MOVE(16x64b, 128, 128)

PTX_TCGEN05_MOVE(16x128b, 2, 1)
PTX_TCGEN05_MOVE(16x128b, 4, 2)
PTX_TCGEN05_MOVE(16x128b, 8, 4)
PTX_TCGEN05_MOVE(16x128b, 16, 8)
PTX_TCGEN05_MOVE(16x128b, 32, 16)
PTX_TCGEN05_MOVE(16x128b, 64, 32)
PTX_TCGEN05_MOVE(16x128b, 128, 64)

PTX_TCGEN05_MOVE(16x256b, 4, 1)
PTX_TCGEN05_MOVE(16x256b, 8, 2)
PTX_TCGEN05_MOVE(16x256b, 16, 4)
PTX_TCGEN05_MOVE(16x256b, 32, 8)
PTX_TCGEN05_MOVE(16x256b, 64, 16)
PTX_TCGEN05_MOVE(16x256b, 128, 32)
#undef PTX_TCGEN05_MOVE

}  // namespace ptx

#endif
