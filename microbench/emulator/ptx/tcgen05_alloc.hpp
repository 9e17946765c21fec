// The C++ bodies of cuda/ptx/tcgen05_alloc.cuh.
#pragma once

namespace ptx {

template <int Group = 1>
inline void tcgen05_alloc(unsigned shared, unsigned columns) {
  emulator::tcgen05_alloc(shared, columns, Group);
}
template <int Group = 1>
inline void tcgen05_dealloc(unsigned address, unsigned columns) {
  emulator::tcgen05_dealloc(address, columns, Group);
}
template <int Group = 1>
inline void tcgen05_relinquish() {
  emulator::tcgen05_relinquish(Group);
}

}  // namespace ptx
