// Barriers of the block (bar.sync, bar.arrive) and of the warp, and the fences between proxies.
#include <map>

#include "emulator/runtime/shared_memory.hpp"
#include "emulator/runtime/warp.hpp"

namespace emulator {

namespace {

struct Barrier {
  u32 expected = 0, arrived = 0;
  u64 generation = 0;
  Clock clock;  // what the arrived have done
  Waiters waiters;
  std::vector<u32> syncing;
};

constexpr u32 kBarriers = 16;
std::vector<Barrier> barriers;  // of every resident block

Barrier& barrier_of(u32 id) { return barriers[running->resident() * kBarriers + id]; }

// Returns true where this arrival completed the barrier.
bool arrive(u32 id, u32 threads, bool syncs) {
  if (id >= kBarriers) fail("barrier ", id, ": a block has 0 to 15");
  if (!threads) threads = block.threads;
  if (threads % kWarp && threads != block.threads) fail("a barrier counts whole warps, not ", threads);
  if (threads > block.threads) fail("a barrier of more threads than the block has: ", threads);
  Barrier& barrier = barrier_of(id);
  if (barrier.arrived && barrier.expected != threads)
    fail("barrier ", id, " expects ", barrier.expected, " threads, and this thread says ", threads);
  barrier.expected = threads;
  release(running->thread, barrier.clock);
  if (syncs) barrier.syncing.push_back(running->thread);
  if (++barrier.arrived < threads) return false;
  for (u32 thread : barrier.syncing) acquire(thread, barrier.clock);
  barrier.syncing.clear();
  barrier.clock.clear();
  barrier.arrived = 0;
  ++barrier.generation;
  wake(barrier.waiters);
  return true;
}

}  // namespace

void barriers_reset() { renew(barriers, machine.blocks * kBarriers); }

void barrier_sync(u32 id, u32 threads) {
  if (!arrive(id, threads, true)) wait_in(barrier_of(id).waiters, "bar.sync", id);
}

void barrier_arrive(u32 id, u32 threads) { arrive(id, threads, false); }

void syncwarp(u32 mask) {
  meet("bar.warp.sync", mask, [mask] {
    Clock joined;
    u32 first = running->warp() * kWarp, lanes = block.lanes(running->warp());
    for (u32 lane = 0; lane < lanes; ++lane)
      if (mask >> lane & 1) release(first + lane, joined);
    for (u32 lane = 0; lane < lanes; ++lane)
      if (mask >> lane & 1) acquire(first + lane, joined);
  });
}

}  // namespace emulator
