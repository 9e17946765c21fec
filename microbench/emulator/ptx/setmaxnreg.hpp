// The C++ bodies of cuda/ptx/setmaxnreg.cuh.
#pragma once

namespace ptx {

template <int Count>
inline void setmaxnreg_increase() {
  emulator::setmaxnreg(Count, true);
}
template <int Count>
inline void setmaxnreg_decrease() {
  emulator::setmaxnreg(Count, false);
}

}  // namespace ptx
