// Two words to shared memory: STS.64, by the 32-bit address that it takes.
#pragma once

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/shared_pair.hpp"
#else

namespace ptx {

__device__ __forceinline__ void store_shared2(unsigned address, unsigned x, unsigned y) {
  asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(address), "r"(x), "r"(y) : "memory");
}

}  // namespace ptx

#endif
