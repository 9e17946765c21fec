// Dynamic shared memory: the bytes, and for every four of them who wrote and read last, for the race report.
//
// A race is found with vector clocks, as FastTrack does (Flanagan and Freund, PLDI 2009): every actor counts its
// releases; an access is ordered before another where the later actor has acquired the count of the earlier one.
// Actors are the threads, the warps (for what a warp reads as one) and the mbarriers (for copies that complete there).
#pragma once
#include "emulator/runtime/block.hpp"

namespace emulator {

// Shared addresses start above zero, as they do on sm_90: address 0 is nobody's.
constexpr u32 kSharedBase = 1024, kSharedMost = 256 * 1024;

using Clock = std::vector<u32>;

// An actor's moment. `pending`: a copy whose wait has not come, ordered before nothing.
struct Moment {
  u32 actor, clock;
};
constexpr u32 kPending = ~0u;

enum class Proxy { generic, async };

void shared_reset();
// Bounds and alignment. `what` names the instruction in the report.
u8* shared_at(u32 address, u32 bytes, u32 alignment, const char* what);

// Tell the shadow of an access by `by`, seen from the clock `seen`. Fails on a race, or where the async proxy reads
// what a thread wrote without fence.proxy.async.
void note_read(u32 address, u32 bytes, Moment by, const Clock& seen, Proxy proxy, const char* what);
void note_write(u32 address, u32 bytes, Moment by, const Clock& seen, Proxy proxy, const char* what);
// Pending accesses of this thread are now ordered at its current moment.
void settle_write(u32 address, u32 bytes, u32 thread);
void settle_read(u32 address, u32 bytes, u32 thread);
bool ordered(Moment earlier, const Clock& seen);
// From now on only mbarrier instructions may touch these eight bytes, or no longer only they.
void mark_mbarrier(u32 address, bool is_mbarrier);

// Clocks.
u32 warp_actor(u32 warp);
u32 mbarrier_actor(u32 number);
// Where the actors of tensor memory begin in a clock: tensor_order.hpp.
u32 tensor_actors();
Clock& clock_of(u32 thread);
Moment now(u32 thread);
// What `thread` has done so far becomes part of `into`.
void release(u32 thread, Clock& into);
void acquire(u32 thread, const Clock& from);
void join(Clock& into, const Clock& from);
// A moment of the warp as one actor, which all of its lanes then know.
Moment warp_moment(u32 warp);
void warp_knows(u32 warp, Moment moment);
void thread_knows(u32 thread, Moment moment);

// For messages: "thread 5", "a collective of warp 2", "a copy that completes on mbarrier 3".
std::string actor_name(u32 actor);

extern std::vector<u32> proxy_fences;  // executed so far, by thread
extern bool race_reports;

}  // namespace emulator
