// One try to wait for an mbarrier that a timed region can hold, for it has no branch: the hardware keeps the thread until
// the phase is complete or its patience ends. Whoever asks must look at the answer.
#pragma once
#include "ptx/mbarrier.cuh"

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/mbarrier_try.hpp"
#else

namespace ptx {

__device__ __forceinline__ bool mbarrier_try(unsigned bar, unsigned parity) { return mbarrier_test(bar, parity); }

}  // namespace ptx

#endif
