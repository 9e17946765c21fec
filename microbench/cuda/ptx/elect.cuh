// One lane for a whole warp (sm_90).
#pragma once

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/elect.hpp"
#else

namespace ptx {

// True in one lane of the warp, the same one every time. All lanes call it together; unlike a comparison of threadIdx,
// ptxas knows that one lane follows the branch, and takes the uniform form of what stands there.
__device__ __forceinline__ bool elect_one() {
  unsigned elected;
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(elected));
  return elected;
}

}  // namespace ptx

#endif
