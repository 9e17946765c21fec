// The C++ bodies of cuda/ptx/mbarrier.cuh.
#pragma once

namespace ptx {

using emulator::fence_mbarrier_init, emulator::mbarrier_expect, emulator::mbarrier_init, emulator::mbarrier_invalidate;
using emulator::mbarrier_test, emulator::mbarrier_wait;
inline void mbarrier_arrive(unsigned bar) { emulator::mbarrier_arrive(bar, 1, 0); }
inline unsigned mbarrier_arrive_if(bool arrives, unsigned bar) {
  if (arrives) mbarrier_arrive(bar);
  return arrives ? ~0u : 0;  // a word may be anything
}
inline void mbarrier_arrive_expect(unsigned bar, unsigned bytes) { emulator::mbarrier_arrive(bar, 1, bytes); }

// Scopes are one here: every arrival releases to the whole cluster.
inline void mbarrier_arrive_remote(unsigned mapped) { emulator::mbarrier_arrive(mapped, 1, 0); }
inline void mbarrier_arrive_expect_remote(unsigned bar, unsigned bytes) { mbarrier_arrive_expect(bar, bytes); }
inline void mbarrier_arrive_cluster(unsigned mapped) { emulator::mbarrier_arrive(mapped, 1, 0); }
inline void mbarrier_wait_cluster(unsigned bar, unsigned parity) { emulator::mbarrier_wait(bar, parity); }

}  // namespace ptx
