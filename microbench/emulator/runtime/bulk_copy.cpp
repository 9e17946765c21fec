// cp.async.bulk without a tensor: contiguous bytes, and the groups of bulk stores.
#include <cstring>

#include "emulator/runtime/copy_groups.hpp"
#include "emulator/runtime/global_memory.hpp"
#include "emulator/runtime/mbarrier.hpp"
#include "emulator/runtime/tensor_copy.hpp"

namespace emulator {

void cp_async_reset();

namespace {

std::vector<CopyGroups> stores;  // by thread

void check_bytes(u32 bytes) {
  if (!bytes || bytes % 16) fail("cp.async.bulk of ", bytes, " bytes: a multiple of 16 is needed");
}

}  // namespace

void copies_reset() {
  cp_async_reset();
  renew(stores, machine.thread_slots());
}

void copies_thread_finished() {
  if (!stores[running->thread].all_waited_for()) fail("the thread ended before it waited for its bulk stores");
}

namespace {

void start_one(u32 shared, u32 bytes, u32 mbarrier, const std::function<void(u32)>& action, const char* what) {
  u8* to = cluster_at(shared, bytes, 16, what);
  Moment moment = copy_joins(mbarrier);
  note_write(shared, bytes, moment, clock_of(running->thread), Proxy::async, what);
  visit(mbarrier, moment);
  std::memset(to, 0xFF, bytes);  // until they land
  start(
      [=] {
        action(shared);
        complete_bytes(mbarrier, bytes, moment);
      },
      true);
}

}  // namespace

void start_load(u32 shared, u32 bytes, u32 mbarrier, u32 ranks, const std::function<void(u32)>& action,
                const char* what) {
  if (resident_of(shared) != resident_of(mbarrier))
    fail(what, ": the destination ", hex(shared), " and the mbarrier ", hex(mbarrier), " lie in two blocks");
  if (!ranks) return start_one(shared, bytes, mbarrier, action, what);
  if (ranks >> cluster_blocks) fail(what, ": the mask ", hex(ranks), " names a rank of a cluster of ", cluster_blocks);
  for (u32 rank = 0; rank < cluster_blocks; ++rank)
    if (ranks >> rank & 1) {
      u32 to = peer(rank, what);
      start_one(in_block(shared, to), bytes, in_block(mbarrier, to), action, what);
    }
}

void start_store(u32 shared, u32 bytes, std::function<void()> action, const char* what) {
  u32 thread = running->thread;
  shared_at(shared, bytes, 16, what);
  note_read(shared, bytes, {thread_actor(thread), kPending}, clock_of(thread), Proxy::async, what);
  stores[thread].add({start(std::move(action), true), shared, bytes});
}

void bulk_load(u32 shared, u64 global, u32 bytes, u32 mbarrier, u32 ranks) {
  const char* what = "cp.async.bulk";
  check_bytes(bytes);
  const u8* from = global_at(global, bytes, 16, what);
  note_global(global, bytes, Access::read);
  auto land = [=](u32 to) { std::memcpy(landing_at(to, bytes, 16, what), from, bytes); };
  start_load(shared, bytes, mbarrier, ranks, land, what);
}

void bulk_store(u64 global, u32 shared, u32 bytes) {
  check_bytes(bytes);
  const u8* from = shared_at(shared, bytes, 16, "cp.async.bulk");
  u8* to = global_at(global, bytes, 16, "cp.async.bulk");
  note_global(global, bytes, Access::write);
  start_store(shared, bytes, [=] { std::memcpy(to, from, bytes); }, "cp.async.bulk");
}

void bulk_commit() { stores[running->thread].commit(); }

// Waiting for the reads alone finishes the writes as well: nothing in a block can tell the difference.
void bulk_wait(u32 pending, bool) {
  stores[running->thread].wait(pending,
                               [](const Copy& copy) { settle_read(copy.shared, copy.bytes, running->thread); });
}

}  // namespace emulator
