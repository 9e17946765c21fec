// The C++ bodies of cuda/ptx/clock.cuh. No time of a GPU: clock64 counts scheduling steps.
#pragma once

namespace ptx {

using emulator::clock64, emulator::globaltimer;
inline unsigned smid() { return 0; }  // blocks run one after another, as on one SM

template <class... Values>
inline void settle(Values...) {}

}  // namespace ptx
