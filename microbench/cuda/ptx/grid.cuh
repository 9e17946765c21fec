// One kernel after another (sm_90): where a launch allows it (programmatic stream serialization), the next kernel's
// blocks start while this one's still run. Without that launch attribute both are without effect.
#pragma once

#ifdef SMSCOPE_EMULATED
#include "emulator/ptx/grid.hpp"
#else

namespace ptx {

// Wait until the kernel before has ended and its writes are to be seen. Before this, nothing that it writes may be
// read, and nothing that it reads may be written.
__device__ __forceinline__ void grid_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// The next kernel may start once every block of this one has said so or ended.
__device__ __forceinline__ void grid_launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

}  // namespace ptx

#endif
