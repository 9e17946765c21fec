// The C++ bodies of cuda/ptx/multicast.cuh.
#pragma once

namespace ptx {

// A mask of no block copies nothing, and nobody would ever see the bytes.
inline unsigned ranks_of(unsigned short ranks) {
  if (!ranks) emulator::fail("a multicast whose mask names no block");
  return ranks;
}

inline void bulk_load_multicast(unsigned shared, const void* global, unsigned bytes, unsigned bar,
                                unsigned short ranks) {
  emulator::bulk_load(shared, reinterpret_cast<unsigned long long>(global), bytes, bar, ranks_of(ranks));
}
using emulator::bulk_send;

template <class... Coordinates>
inline void tensor_load_multicast(unsigned shared, const TensorMap* map, unsigned bar, unsigned short ranks,
                                  Coordinates... coordinates) {
  const int at[] = {coordinates...};
  emulator::tensor_load(shared, map, bar, at, sizeof...(coordinates), ranks_of(ranks));
}

}  // namespace ptx
