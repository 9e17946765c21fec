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
  if (!bytes || bytes % 16) fail("cp.async.bulk of " + std::to_string(bytes) + " bytes: a multiple of 16 is needed");
}

}  // namespace

void copies_reset() {
  cp_async_reset();
  stores.clear();
  stores.resize(block.threads);
}

void copies_thread_finished() {
  if (!stores[running->thread].all_waited_for()) fail("the thread ended before it waited for its bulk stores");
}

void start_load(u32 shared, u32 bytes, u32 mbarrier, std::function<void()> action, const char* what) {
  Moment moment = copy_joins(mbarrier);
  note_write(shared, bytes, moment, clock_of(running->thread), Proxy::async, what);
  std::memset(shared_at(shared, bytes, 16, what), 0xFF, bytes);  // until they land
  start(
      [=, action = std::move(action)] {
        action();
        complete_bytes(mbarrier, bytes, moment);
      },
      true);
}

void start_store(u32 shared, u32 bytes, std::function<void()> action, const char* what) {
  u32 thread = running->thread;
  shared_at(shared, bytes, 16, what);
  note_read(shared, bytes, {thread, kPending}, clock_of(thread), Proxy::async, what);
  stores[thread].add({start(std::move(action), true), shared, bytes});
}

void bulk_load(u32 shared, u64 global, u32 bytes, u32 mbarrier) {
  check_bytes(bytes);
  u8* to = shared_at(shared, bytes, 16, "cp.async.bulk");
  const u8* from = global_at(global, bytes, 16, "cp.async.bulk");
  start_load(shared, bytes, mbarrier, [=] { std::memcpy(to, from, bytes); }, "cp.async.bulk");
}

void bulk_store(u64 global, u32 shared, u32 bytes) {
  check_bytes(bytes);
  const u8* from = shared_at(shared, bytes, 16, "cp.async.bulk");
  u8* to = global_at(global, bytes, 16, "cp.async.bulk");
  start_store(shared, bytes, [=] { std::memcpy(to, from, bytes); }, "cp.async.bulk");
}

void bulk_commit() { stores[running->thread].commit(); }

// Waiting for the reads alone finishes the writes as well: nothing in a block can tell the difference.
void bulk_wait(u32 pending, bool) {
  stores[running->thread].wait(pending,
                               [](const Copy& copy) { settle_read(copy.shared, copy.bytes, running->thread); });
}

}  // namespace emulator
