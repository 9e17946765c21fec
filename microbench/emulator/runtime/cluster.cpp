// What blocks of a cluster do together: their barrier, and each other's shared memory (PTX ISA, 'barrier.cluster',
// 'mapa', 'st.async').
#include <cstring>

#include "emulator/runtime/mbarrier.hpp"
#include "emulator/runtime/tensor_copy.hpp"

namespace emulator {

namespace {

struct ClusterBarrier {
  u32 alive = 0, arrived = 0;
  Clock clock, inits;                    // of those who have arrived
  Clock complete_clock, complete_inits;  // of the last complete phase
  Waiters waiters;
};
std::vector<ClusterBarrier> barriers;  // by resident cluster

enum class Turn : u8 { away, arrived, complete };
std::vector<Turn> turns;  // by thread

ClusterBarrier& barrier_of(u32 thread) { return barriers[thread / block.thread_slots() / cluster_blocks]; }

void complete(ClusterBarrier& barrier, u32 thread) {
  if (!barrier.arrived || barrier.arrived < barrier.alive) return;
  u32 slots = cluster_blocks * block.thread_slots(), first = thread / slots * slots;
  for (u32 t = first; t < first + slots; ++t)
    if (turns[t] == Turn::arrived) turns[t] = Turn::complete;
  barrier.complete_clock = std::move(barrier.clock);
  barrier.complete_inits = std::move(barrier.inits);
  barrier.clock.clear();
  barrier.inits.clear();
  barrier.arrived = 0;
  wake(barrier.waiters);
}

void arrive(u32 thread, bool relaxed) {
  if (turns[thread] != Turn::away)
    fail("barrier.cluster.arrive: ", thread_name(thread), " arrived before, and did not wait");
  ClusterBarrier& barrier = barrier_of(thread);
  if (relaxed)
    release_inits(thread, barrier.inits);
  else
    release(thread, barrier.clock);
  turns[thread] = Turn::arrived;
  ++barrier.arrived;
  complete(barrier, thread);
}

}  // namespace

void clusters_reset() {
  renew(barriers, machine.blocks / cluster_blocks);
  for (ClusterBarrier& barrier : barriers) barrier.alive = cluster_blocks * block.threads;
  turns.assign(machine.thread_slots(), Turn::away);
}

// Threads that have ended are not waited for.
void clusters_thread_finished() {
  u32 thread = running->thread;
  ClusterBarrier& barrier = barrier_of(thread);
  --barrier.alive;
  if (turns[thread] == Turn::arrived) --barrier.arrived;
  turns[thread] = Turn::away;
  complete(barrier, thread);
}

void cluster_arrive(bool relaxed) { arrive(running->thread, relaxed); }

void cluster_wait() {
  u32 thread = running->thread;
  ClusterBarrier& barrier = barrier_of(thread);
  if (turns[thread] == Turn::away) fail("barrier.cluster.wait without barrier.cluster.arrive before it");
  while (turns[thread] == Turn::arrived) wait_in(barrier.waiters, "barrier.cluster.wait");
  turns[thread] = Turn::away;
  acquire(thread, barrier.complete_clock);
  acquire_inits(thread, barrier.complete_inits);
}

u32 map_shared(u32 address, u32 rank) {
  shared_at(address, 1, 1, "mapa");
  return in_block(address, peer(rank, "mapa"));
}

void load_cluster(u32 address, void* value, u32 bytes) {
  const char* what = "ld.shared::cluster";
  const u8* from = cluster_at(address, bytes, bytes, what);
  note_read(address, bytes, now(running->thread), clock_of(running->thread), Proxy::generic, what);
  std::memcpy(value, from, bytes);
}

void store_cluster(u32 address, const void* value, u32 bytes) {
  const char* what = "st.shared::cluster";
  u8* to = cluster_at(address, bytes, bytes, what);
  note_write(address, bytes, now(running->thread), clock_of(running->thread), Proxy::generic, what);
  std::memcpy(to, value, bytes);
}

u32 add_cluster(u32 address, u32 value) {
  const char* what = "atom.shared::cluster";
  u8* at = cluster_at(address, sizeof value, sizeof value, what);
  note_atomic(address, sizeof value, now(running->thread), clock_of(running->thread), what);
  u32 old, sum;
  std::memcpy(&old, at, sizeof old);
  sum = old + value;
  std::memcpy(at, &sum, sizeof sum);
  return old;
}

// A launch without clusters has one of one block, but an H100 stops these in it with an illegal instruction, also where
// they address the block's own memory; plain stores and multicasts to oneself it takes.
void needs_clusters(const char* what) {
  if (cluster_blocks == 1) fail(what, " in a launch without clusters: a GPU calls it an illegal instruction");
}

// A store that an mbarrier beside its destination counts. Not of the async proxy: no fence stands between.
void store_async(u32 address, const void* value, u32 bytes, u32 mbarrier) {
  const char* what = "st.async";
  needs_clusters(what);
  if (resident_of(address) != resident_of(mbarrier))
    fail("st.async: the destination ", hex(address), " and the mbarrier ", hex(mbarrier), " lie in two blocks");
  u8* to = cluster_at(address, bytes, bytes, what);
  Moment moment = copy_joins(mbarrier);
  note_write(address, bytes, moment, clock_of(running->thread), Proxy::generic, what);
  std::memset(to, 0xFF, bytes);
  std::vector<u8> copy(static_cast<const u8*>(value), static_cast<const u8*>(value) + bytes);
  start(
      [=] {
        std::memcpy(landing_at(address, bytes, bytes, what), copy.data(), bytes);
        complete_bytes(mbarrier, bytes, moment);
      },
      true);
}

// From this block's shared memory to a peer's. The reads end where the peer's mbarrier says that the copy has landed.
void bulk_send(u32 to, u32 from, u32 bytes, u32 mbarrier) {
  const char* what = "cp.async.bulk between blocks";
  needs_clusters(what);
  shared_at(from, bytes, 16, what);
  auto land = [=](u32 there) {
    std::memcpy(landing_at(there, bytes, 16, what), landing_at(from, bytes, 16, what), bytes);
  };
  Moment moment = copy_joins(mbarrier);
  note_read(from, bytes, moment, clock_of(running->thread), Proxy::async, what);
  keep_until(from, moment);
  start_load(to, bytes, mbarrier, 0, land, what);
}

}  // namespace emulator
