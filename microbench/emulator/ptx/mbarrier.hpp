// The C++ bodies of cuda/ptx/mbarrier.cuh.
#pragma once

namespace ptx {

inline void mbarrier_init(unsigned bar, unsigned arrivals) { emulator::mbarrier_init(bar, arrivals); }
inline void mbarrier_invalidate(unsigned bar) { emulator::mbarrier_invalidate(bar); }
inline void fence_mbarrier_init() { emulator::fence_mbarrier_init(); }
inline void mbarrier_arrive(unsigned bar) { emulator::mbarrier_arrive(bar, 1, 0); }
inline void mbarrier_arrive_expect(unsigned bar, unsigned bytes) { emulator::mbarrier_arrive(bar, 1, bytes); }
inline void mbarrier_expect(unsigned bar, unsigned bytes) { emulator::mbarrier_expect(bar, bytes); }
inline bool mbarrier_test(unsigned bar, unsigned parity) { return emulator::mbarrier_test(bar, parity); }
inline void mbarrier_wait(unsigned bar, unsigned parity) { emulator::mbarrier_wait(bar, parity); }

// Scopes are one here: every arrival releases to the whole cluster.
inline void mbarrier_arrive_remote(unsigned mapped) { emulator::mbarrier_arrive(mapped, 1, 0); }
inline void mbarrier_arrive_expect_remote(unsigned mapped, unsigned bytes) {
  emulator::mbarrier_arrive(mapped, 1, bytes);
}
inline void mbarrier_arrive_cluster(unsigned mapped) { emulator::mbarrier_arrive(mapped, 1, 0); }
inline void mbarrier_wait_cluster(unsigned bar, unsigned parity) { emulator::mbarrier_wait(bar, parity); }

}  // namespace ptx
