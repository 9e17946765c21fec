// cp.async: copies of 4, 8 or 16 bytes by one thread, closed into groups, waited for by count. The data may arrive at
// any moment from the issue to the wait; nobody may touch them before the wait of the thread that asked.
#include <cstring>

#include "emulator/runtime/copy_groups.hpp"
#include "emulator/runtime/global_memory.hpp"
#include "emulator/runtime/shared_memory.hpp"

namespace emulator {

namespace {

std::vector<CopyGroups> pipelines;  // by thread

}  // namespace

void cp_async_reset() { renew(pipelines, machine.thread_slots()); }

void cp_async(u32 shared, u64 global, u32 bytes, u32 used) {
  if (used > bytes) fail("cp.async reads ", used, " bytes to write ", bytes);
  u32 thread = running->thread;
  u8* to = shared_at(shared, bytes, bytes, "cp.async");
  const u8* from = used ? global_at(global, used, bytes, "cp.async") : nullptr;
  if (used) note_global(global, used, Access::read);
  note_write(shared, bytes, {thread_actor(thread), kPending}, clock_of(thread), Proxy::generic, "cp.async");
  std::memset(to, 0xFF, bytes);  // not there yet, and no longer what was there
  auto copy = [=] {
    if (used) std::memcpy(to, from, used);
    std::memset(to + used, 0, bytes - used);
  };
  pipelines[thread].add({start(copy, false), shared, bytes});
}

void cp_async_commit() { pipelines[running->thread].commit(); }

void cp_async_wait(u32 pending) {
  pipelines[running->thread].wait(pending,
                                  [](const Copy& copy) { settle_write(copy.shared, copy.bytes, running->thread); });
}

}  // namespace emulator
