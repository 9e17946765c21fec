// The C++ bodies of cuda/ptx/tma.cuh.
#pragma once

namespace ptx {

inline void bulk_load(unsigned shared, const void* global, unsigned bytes, unsigned bar) {
  emulator::bulk_load(shared, reinterpret_cast<unsigned long long>(global), bytes, bar);
}
inline void bulk_store(void* global, unsigned shared, unsigned bytes) {
  emulator::bulk_store(reinterpret_cast<unsigned long long>(global), shared, bytes);
}
using emulator::bulk_commit;
template <int Pending>
inline void bulk_wait() {
  emulator::bulk_wait(Pending, false);
}
template <int Pending>
inline void bulk_wait_read() {
  emulator::bulk_wait(Pending, true);
}

template <class... Coordinates>
inline void tensor_load(unsigned shared, const TensorMap* map, unsigned bar, Coordinates... coordinates) {
  const int at[] = {coordinates...};
  emulator::tensor_load(shared, map, bar, at, sizeof...(coordinates));
}
template <class... Coordinates>
inline void tensor_store(const TensorMap* map, unsigned shared, Coordinates... coordinates) {
  const int at[] = {coordinates...};
  emulator::tensor_store(map, shared, at, sizeof...(coordinates), emulator::Reduce::none);
}
template <class... Coordinates>
inline void tensor_add(const TensorMap* map, unsigned shared, Coordinates... coordinates) {
  const int at[] = {coordinates...};
  emulator::tensor_store(map, shared, at, sizeof...(coordinates), emulator::Reduce::add);
}

}  // namespace ptx
