// The C++ bodies of cuda/ptx/shared_pair.cuh.
#pragma once

namespace ptx {

__attribute__((always_inline)) inline void store_shared2(unsigned address, unsigned x, unsigned y) {
  const unsigned words[] = {x, y};
  emulator::store_shared(address, words, sizeof words);
}

}  // namespace ptx
