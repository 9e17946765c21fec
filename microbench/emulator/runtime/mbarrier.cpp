// mbarrier: a phase is complete where every arrival has come and the bytes that were expected have landed.
#include "emulator/runtime/mbarrier.hpp"

#include <algorithm>
#include <map>

namespace emulator {

namespace {

// The range of the transaction count (PTX ISA, 'Contents of the mbarrier object').
constexpr long long kMostBytes = (1 << 20) - 1;
constexpr u32 kMostArrivals = (1 << 20) - 1;

struct Mbarrier {
  u32 address, expected, pending, number;  // `number`: within its block
  u32 phase = 0;                           // completed so far
  long long bytes = 0;                     // still to land
  long long promised = 0;                  // expected in the current phase
  Clock arrived, released;                 // of the current phase, of the last complete one
  Waiters waiters;
  u32 initialiser;  // thread
  Moment initialised;
  Moment fenced{0, kPending};  // the first fence after it: what another block must have waited for
};
std::map<u32, Mbarrier> mbarriers;
std::vector<u32> made_in;  // by resident block

// Cluster barriers order inits by fence.mbarrier_init alone where arrivals are relaxed.
std::vector<Clock> known_inits;  // by thread

bool knows(u32 thread, Moment init) {
  const Clock& inits = known_inits[thread];
  return init.actor == thread_actor(thread) || ordered(init, clock_of(thread)) ||
         (!inits.empty() && ordered(init, inits));
}

Mbarrier& find(u32 address, const char* what) {
  cluster_at(address, 8, 8, what);
  auto found = mbarriers.find(address);
  if (found == mbarriers.end()) fail(what, ": no mbarrier was initialised at ", hex(address));
  Mbarrier& mbarrier = found->second;
  if (!race_reports) return mbarrier;
  std::string at = " at " + hex(address);
  if (!knows(running->thread, mbarrier.initialised))
    fail("race: ", what, at, " is not ordered after mbarrier.init by ", thread_name(mbarrier.initialiser),
         (mbarrier.fenced.clock == kPending ? ", which came without fence.mbarrier_init" : ""));
  if (resident_of(address) != running->resident() && !knows(running->thread, mbarrier.fenced))
    fail("fence: ", what, at, of_rank(resident_of(address)), ", but ", thread_name(mbarrier.initialiser),
         " initialised it without fence.mbarrier_init before the cluster barrier");
  visit(address, now(running->thread));
  return mbarrier;
}

// Waits, inits and ends are the block's own affair.
Mbarrier& find_own(u32 address, const char* what) {
  shared_at(address, 8, 8, what);
  return find(address, what);
}

void fence_inits(u32 thread) {
  if (!race_reports) return;
  for (auto& [address, mbarrier] : mbarriers)
    if (mbarrier.initialiser == thread && mbarrier.fenced.clock == kPending) mbarrier.fenced = now(thread);
}

void expect(Mbarrier& mbarrier, long long bytes) {
  mbarrier.bytes += bytes;
  if (bytes > 0) mbarrier.promised += bytes;
  if (mbarrier.bytes > kMostBytes || mbarrier.bytes < -kMostBytes)
    fail("mbarrier at ", hex(mbarrier.address), ": the count of bytes left its range");
}

void complete_phase(Mbarrier& mbarrier) {
  if (mbarrier.pending || mbarrier.bytes) return;
  ++mbarrier.phase;
  mbarrier.pending = mbarrier.expected;
  mbarrier.promised = 0;
  mbarrier.released = mbarrier.arrived;
  if (race_reports) mbarrier.released[mbarrier_actor(resident_of(mbarrier.address), mbarrier.number)] = mbarrier.phase;
  wake(mbarrier.waiters);
}

}  // namespace

void mbarriers_reset() {
  mbarriers.clear();
  made_in.assign(machine.blocks, 0);
  known_inits.assign(machine.thread_slots(), Clock());
}

std::string progress_at(u32 address) {
  auto found = mbarriers.find(address);
  if (found == mbarriers.end()) return "";
  const Mbarrier& at = found->second;
  return joined(" (", at.expected - at.pending, " of ", at.expected, " arrivals, ", at.promised - at.bytes, " of ",
                at.promised, " bytes)");
}

void fence_mbarrier_init() { fence_inits(running->thread); }

void fence_proxy_async() {
  ++proxy_fences[running->thread];
  fence_inits(running->thread);
}

void release_inits(u32 thread, Clock& into) {
  if (!race_reports) return;
  if (into.empty()) into.assign(clock_of(thread).size(), 0);
  for (auto& [address, mbarrier] : mbarriers)
    if (mbarrier.initialiser == thread && mbarrier.fenced.clock != kPending)
      into[mbarrier.fenced.actor] = std::max(into[mbarrier.fenced.actor], mbarrier.fenced.clock);
  tick(thread);
}

void acquire_inits(u32 thread, const Clock& from) {
  if (race_reports) join(known_inits[thread], from);
}

void mbarrier_init(u32 address, u32 arrivals) {
  u32 thread = running->thread;
  shared_at(address, 8, 8, "mbarrier.init");
  if (arrivals < 1 || arrivals > kMostArrivals) fail("mbarrier.init of ", arrivals, " arrivals");
  if (mbarriers.count(address)) fail("mbarrier.init at ", hex(address), ", which holds an mbarrier already");
  note_write(address, 8, now(thread), clock_of(thread), Proxy::generic, "mbarrier.init");
  mark_mbarrier(address, true);
  Mbarrier made{address, arrivals, arrivals, made_in[resident_of(address)]++};
  made.initialiser = thread;
  made.initialised = now(thread);
  mbarriers.emplace(address, std::move(made));
}

void mbarrier_invalidate(u32 address) {
  find_own(address, "mbarrier.inval");
  mark_mbarrier(address, false);
  mbarriers.erase(address);
}

void mbarrier_arrive(u32 address, u32 arrivals, u32 expected_bytes) {
  Mbarrier& mbarrier = find(address, "mbarrier.arrive");
  if (mbarrier.pending < arrivals)
    fail("mbarrier.arrive at ", hex(address), ": more arrivals than the ", mbarrier.expected, " of its phase");
  expect(mbarrier, expected_bytes);
  release(running->thread, mbarrier.arrived);
  mbarrier.pending -= arrivals;
  complete_phase(mbarrier);
}

void mbarrier_expect(u32 address, u32 bytes) {
  Mbarrier& mbarrier = find(address, "mbarrier.expect_tx");
  expect(mbarrier, bytes);
}

bool mbarrier_test(u32 address, u32 parity) {
  Mbarrier& mbarrier = find_own(address, "mbarrier.test_wait");
  if (mbarrier.phase % 2 == parity % 2) {
    poll();
    return false;
  }
  acquire(running->thread, mbarrier.released);
  return true;
}

void mbarrier_wait(u32 address, u32 parity) {
  Mbarrier& mbarrier = find_own(address, "mbarrier.try_wait");
  while (mbarrier.phase % 2 == parity % 2) wait_in(mbarrier.waiters, "mbarrier", address);
  acquire(running->thread, mbarrier.released);
}

Moment copy_joins(u32 address) {
  Mbarrier& mbarrier = find(address, "a bulk copy");
  if (race_reports && mbarrier.fenced.clock == kPending)
    fail("proxy: a bulk copy completes on the mbarrier at ", hex(address), ", but ", thread_name(mbarrier.initialiser),
         " initialised it without fence.mbarrier_init");
  return {mbarrier_actor(resident_of(address), mbarrier.number), mbarrier.phase + 1};
}

void complete_bytes(u32 address, u32 bytes, Moment joined) {
  landing_at(address, 8, 8, "the completion of a bulk copy");
  auto found = mbarriers.find(address);
  if (found == mbarriers.end()) fail("a bulk copy completes on the mbarrier at ", hex(address), ", which is gone");
  Mbarrier& mbarrier = found->second;
  if (mbarrier.phase + 1 != joined.clock)
    fail("mbarrier at ", hex(address), ": ", bytes,
         " bytes of a copy land after its phase was complete; more bytes were copied than expected");
  expect(mbarrier, -static_cast<long long>(bytes));
  complete_phase(mbarrier);
}

void arrive_later(u32 address, const Clock& done) {
  landing_at(address, 8, 8, "the arrival of tcgen05.commit");
  auto found = mbarriers.find(address);
  if (found == mbarriers.end()) fail("a tcgen05.commit arrives at the mbarrier at ", hex(address), ", which is gone");
  Mbarrier& mbarrier = found->second;
  if (!mbarrier.pending)
    fail("tcgen05.commit at ", hex(address), ": more arrivals than the ", mbarrier.expected, " of its phase");
  join(mbarrier.arrived, done);
  --mbarrier.pending;
  complete_phase(mbarrier);
}

}  // namespace emulator
