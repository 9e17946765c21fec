// What asynchronous copies need of an mbarrier.
#pragma once
#include "emulator/runtime/shared_memory.hpp"

namespace emulator {

// The phase that a copy issued now by the running thread completes in, as a moment of the mbarrier. Fails where the
// mbarrier does not exist, or its init was not made visible to the async proxy.
Moment copy_joins(u32 mbarrier);
// `bytes` of such a copy have arrived.
void complete_bytes(u32 mbarrier, u32 bytes, Moment joined);
// The tensor cores arrive, once what was committed is done: whoever waits knows `done`.
void arrive_later(u32 mbarrier, const Clock& done);
// What came of what its current phase waits for, as a report says it: " (1 of 1 arrivals, 128 of 64 bytes)". Empty
// where no mbarrier is.
std::string progress_at(u32 address);

// What a cluster barrier with relaxed arrivals hands on: the inits of this thread that a fence.mbarrier_init followed.
void release_inits(u32 thread, Clock& into);
void acquire_inits(u32 thread, const Clock& from);

}  // namespace emulator
