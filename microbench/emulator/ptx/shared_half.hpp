// The C++ bodies of cuda/ptx/shared_half.cuh.
#pragma once

namespace ptx {

__attribute__((always_inline)) inline unsigned short load_shared_half(unsigned address) {
  return emulator::loaded<unsigned short>(emulator::load_shared, address);
}

}  // namespace ptx
