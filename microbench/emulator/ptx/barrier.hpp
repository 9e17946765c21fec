// The C++ bodies of cuda/ptx/barrier.cuh.
#pragma once

namespace ptx {

using emulator::barrier_arrive, emulator::barrier_sync, emulator::fence_proxy_async;

}  // namespace ptx
