// setmaxnreg (sm_90a): a warpgroup gives registers back, or waits until as many are free. All its warps execute it;
// Count is a multiple of 8 from 24 to 256. The kernel needs __launch_bounds__(threads, 1), or ptxas ignores it.
#pragma once

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/setmaxnreg.hpp"
#else

namespace ptx {

template <int Count>
__device__ __forceinline__ void setmaxnreg_increase() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count));
}

template <int Count>
__device__ __forceinline__ void setmaxnreg_decrease() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count));
}

}  // namespace ptx

#endif
