// Dynamic shared memory: the bytes, and for every four of them who wrote and read last, for the race report.
//
// Every resident block has an arena of its own. A 32-bit address names it: the block's place among the resident ones
// from bit 24 on, then the offset, as on sm_90, where a cluster's window is divided in this way. A block's own
// addresses are therefore valid ones of its cluster's window too, and 18-bit fields of descriptors hold the offset.
//
// A race is found with vector clocks, as FastTrack does (Flanagan and Freund, PLDI 2009): every actor counts its
// releases; an access is ordered before another where the later actor has acquired the count of the earlier one.
// Actors are the threads, the warps (for what a warp reads as one) and the mbarriers (for copies that complete there).
#pragma once
#include "emulator/runtime/block.hpp"

namespace emulator {

// Shared addresses start above zero, as they do on sm_90: address 0 is nobody's.
constexpr u32 kSharedBase = 1024, kSharedMost = 256 * 1024, kWindowShift = 24, kMostResident = 256;

using Clock = std::vector<u32>;

// An actor's moment. `pending`: a copy whose wait has not come, ordered before nothing.
struct Moment {
  u32 actor, clock;
};
constexpr u32 kPending = ~0u;

enum class Proxy { generic, async };

void shared_reset();

// Addresses.
constexpr u32 resident_of(u32 address) { return address >> kWindowShift; }
// The same offset in the arena of another resident block.
constexpr u32 in_block(u32 address, u32 resident) {
  return (address & ((1u << kWindowShift) - 1)) | resident << kWindowShift;
}
inline u32 window() { return running->resident() << kWindowShift; }  // of the running thread's block
// The resident block of this rank in the running thread's cluster.
u32 peer(u32 rank, const char* what);

// Bounds and alignment; `what` names the instruction in the report. shared_at: in the running thread's block alone.
// cluster_at: in any block of its cluster that has not ended. landing_at: for work that is asynchronous, whoever runs.
u8* shared_at(u32 address, u32 bytes, u32 alignment, const char* what);
u8* cluster_at(u32 address, u32 bytes, u32 alignment, const char* what);
u8* landing_at(u32 address, u32 bytes, u32 alignment, const char* what);

// The running thread asked `by` to use a block of its cluster: where that is another one, it must not end before.
void visit(u32 address, Moment by);
void keep_until(u32 address, Moment by);  // the same where it may be its own
// The last thread of a resident block returned. Fails where a visitor may still be at work.
void arena_finished(u32 resident);

// Tell the shadow of an access by `by`, seen from the clock `seen`. Fails on a race, or where the async proxy reads
// what a thread wrote without fence.proxy.async.
void note_read(u32 address, u32 bytes, Moment by, const Clock& seen, Proxy proxy, const char* what);
void note_write(u32 address, u32 bytes, Moment by, const Clock& seen, Proxy proxy, const char* what);
// An atomic update: in order with every other one, and with nothing else.
void note_atomic(u32 address, u32 bytes, Moment by, const Clock& seen, const char* what);
// Pending accesses of this thread are now ordered at its current moment.
void settle_write(u32 address, u32 bytes, u32 thread);
void settle_read(u32 address, u32 bytes, u32 thread);
bool ordered(Moment earlier, const Clock& seen);
// From now on only mbarrier instructions may touch these eight bytes, or no longer only they.
void mark_mbarrier(u32 address, bool is_mbarrier);

// Clocks. Actors are numbered within a cluster, threads and warps within the machine.
u32 thread_actor(u32 thread);
u32 warp_actor(u32 warp);
u32 mbarrier_actor(u32 resident, u32 number);
bool is_thread(u32 actor);
// Where the actors of tensor memory begin in a clock: tensor_order.hpp.
u32 tensor_actors();
Clock& clock_of(u32 thread);
Moment now(u32 thread);
// What `thread` has done so far becomes part of `into`.
void release(u32 thread, Clock& into);
void acquire(u32 thread, const Clock& from);
// What `thread` does from now on comes after every moment of it so far.
void tick(u32 thread);
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
