// The C++ bodies of cuda/ptx/read_only.cuh.
#pragma once

namespace ptx {

template <class T>
inline T read_only(const T* at) {
  return emulator::loaded<T>(emulator::load_global, reinterpret_cast<unsigned long long>(at));
}

}  // namespace ptx
