// The C++ bodies of cuda/ptx/grid.cuh: kernels run one after another here, so the one before has always ended.
#pragma once

namespace ptx {

inline void grid_wait() {}
inline void grid_launch_dependents() {}

}  // namespace ptx
