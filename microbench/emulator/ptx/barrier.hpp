// The C++ bodies of cuda/ptx/barrier.cuh.
#pragma once

namespace ptx {

inline void barrier_sync(unsigned id, unsigned threads) { emulator::barrier_sync(id, threads); }
inline void barrier_arrive(unsigned id, unsigned threads) { emulator::barrier_arrive(id, threads); }
inline void fence_proxy_async() { emulator::fence_proxy_async(); }

}  // namespace ptx
