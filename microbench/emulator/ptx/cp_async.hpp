// The C++ bodies of cuda/ptx/cp_async.cuh.
#pragma once

namespace ptx {

inline void cp_async16(unsigned shared, const void* global, unsigned used = 16) {
  emulator::cp_async(shared, reinterpret_cast<unsigned long long>(global), 16, used);
}
inline void cp_async16_line(unsigned shared, const void* global, unsigned used = 16) {
  cp_async16(shared, global, used);
}
template <int Bytes>
inline void cp_async(unsigned shared, const void* global) {
  static_assert(Bytes == 4 || Bytes == 8, "cp.async.ca moves 4 or 8 bytes here; cp_async16 moves 16");
  emulator::cp_async(shared, reinterpret_cast<unsigned long long>(global), Bytes, Bytes);
}
using emulator::cp_async_commit;
template <int Pending>
inline void cp_async_wait() {
  emulator::cp_async_wait(Pending);
}

}  // namespace ptx
