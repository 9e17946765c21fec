#pragma once
// Clocks, and the fence that keeps them honest. Included as "ptx/clock.cuh".
//
//   ptx::settle(x, p);                  // operands have arrived
//   long long start = ptx::clock64();
//   ...                                 // the timed instructions, as asm volatile
//   ptx::settle(x);                     // only where the last result must have arrived: costs ISETP and PMTRIG
//   long long stop = ptx::clock64();
//
// What ptxas makes of each was read from SASS of NVRTC 12.9 for sm_70, sm_80, sm_90a and sm_100a; tests/compile keeps
// it so.

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/clock.hpp"
#else

namespace ptx {

// Cycles of this SM since some moment of its own: comparable on one SM only. CS2R at both ends: a fixed-latency read
// that samples when it issues; on sm_120 ptxas turns one end into CS2UR, its uniform twin. (%clock becomes S2UR from
// sm_80 on, which takes a scoreboard, a NOP or DEPBAR, and is asymmetric.)
__device__ __forceinline__ long long clock64() {
  long long cycles;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles)::"memory");
  return cycles;
}

// Nanoseconds since boot, the same on every SM, in ticks of 32 ns or coarser. CS2R as well.
__device__ __forceinline__ unsigned long long globaltimer() {
  unsigned long long nanoseconds;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds)::"memory");
  return nanoseconds;
}

// The SM that runs this thread, 0 to %nsmid - 1. Volatile: preemption may move a block.
__device__ __forceinline__ unsigned smid() {
  unsigned id;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  return id;
}

// Makes a value arrive before what follows. A load returns at once and raises a scoreboard; whoever reads the register
// first waits for it, and that must not be the first timed instruction. So something reads it here, in order with the
// clock: a compare, and a performance-monitor trigger under its predicate, which counts an event that nobody looks at
// where the value happens to be the pattern. ISETP and PMTRIG have fixed latency, branch nowhere and change no value.
// The alternatives were read in SASS too: a vote is removed, bar.warp.sync becomes a NOP that waits for no operand,
// trap branches, and a predicated membar or nanosleep is wrapped in BSSY, BRA and BSYNC.
__device__ __forceinline__ void settle_one(unsigned value) {
  asm volatile("{.reg .pred p; setp.eq.b32 p, %0, 0x7fc0dead; @p pmevent 1;}" ::"r"(value) : "memory");
}
__device__ __forceinline__ void settle_one(int value) { settle_one(static_cast<unsigned>(value)); }
__device__ __forceinline__ void settle_one(float value) { settle_one(__float_as_uint(value)); }
__device__ __forceinline__ void settle_one(unsigned long long value) {
  asm volatile("{.reg .pred p; setp.eq.b64 p, %0, 0x7fc0dead7fc0dead; @p pmevent 1;}" ::"l"(value) : "memory");
}
__device__ __forceinline__ void settle_one(long long value) { settle_one(static_cast<unsigned long long>(value)); }
__device__ __forceinline__ void settle_one(double value) { settle_one(__double_as_longlong(value)); }
template <class Pointee>
__device__ __forceinline__ void settle_one(Pointee* address) {
  settle_one(reinterpret_cast<unsigned long long>(address));
}

template <class... Values>
__device__ __forceinline__ void settle(Values... values) {
  (settle_one(values), ...);
}

}  // namespace ptx

#endif
