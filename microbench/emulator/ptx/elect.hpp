// The C++ body of cuda/ptx/elect.cuh.
#pragma once

namespace ptx {

inline bool elect_one() { return emulator::elect(); }

}  // namespace ptx
