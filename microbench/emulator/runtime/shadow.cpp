// The shadow of shared memory: for every four bytes who wrote and read last, by which races and missing fences show.
#include "emulator/runtime/shared_memory.hpp"

namespace emulator {

namespace {

constexpr u32 kCellBytes = 4, kFew = 3, kNobody = ~0u;

// What happened last to four bytes. Readers since the last write: a few here, more of them in `many`. Atomic updates
// stand there in the place of readers: they are in order among themselves, and with nothing else.
struct Cell {
  u32 writer = kNobody, write_clock = 0, writer_fences = 0;
  bool async_write = false, mbarrier = false, updated = false;
  u32 readers = 0;
  Moment few[kFew];
  std::unique_ptr<std::vector<Moment>> many;
};

std::vector<std::vector<Cell>> shadows;  // by resident block

[[noreturn]] void report(u32 address, Moment by, const char* what, const char* earlier_kind, Moment earlier) {
  fail("race: ", what, " by ", actor_name(by.actor), " at shared address ", hex(address), " is not ordered after the ",
       earlier_kind, " by ", actor_name(earlier.actor),
       earlier.clock == kPending ? ", a copy that has not been waited for" : "");
}

// An actor is in order with itself, except with its own pending copies.
bool unordered(Moment earlier, Moment by, const Clock& seen) {
  return (earlier.actor != by.actor || earlier.clock == kPending) && !ordered(earlier, seen);
}

void check_writer(Cell& cell, u32 address, Moment by, const Clock& seen, const char* what) {
  if (cell.mbarrier) fail(what, " at shared address ", hex(address), " touches an mbarrier");
  Moment last{cell.writer, cell.write_clock};
  if (cell.writer != kNobody && unordered(last, by, seen)) report(address, by, what, "write", last);
}

Moment* readers_of(Cell& cell, u32& count) {
  count = cell.many ? static_cast<u32>(cell.many->size()) : cell.readers;
  return cell.many ? cell.many->data() : cell.few;
}

// Fails where one of them is not ordered before; `conflict` false: they are of the same kind.
void check_readers(Cell& cell, u32 address, Moment by, const Clock& seen, const char* what, bool conflict) {
  u32 count;
  Moment* readers = readers_of(cell, count);
  for (u32 i = 0; i < count && conflict; ++i)
    if (unordered(readers[i], by, seen)) report(address, by, what, cell.updated ? "update" : "read", readers[i]);
}

void add_reader(Cell& cell, Moment by, const Clock& seen) {
  u32 count;
  Moment* readers = readers_of(cell, count);
  // Whoever is ordered before this read is ordered before all that follows it.
  u32 kept = 0;
  for (u32 i = 0; i < count; ++i)
    if (unordered(readers[i], by, seen)) readers[kept++] = readers[i];
  if (cell.many) {
    cell.many->resize(kept);
    cell.many->push_back(by);
  } else if (kept < kFew) {
    cell.few[kept] = by;
    cell.readers = kept + 1;
  } else {
    cell.many = std::make_unique<std::vector<Moment>>(cell.few, cell.few + kept);
    cell.many->push_back(by);
  }
}

template <class Function>
void each_cell(u32 address, u32 bytes, Function function) {
  if (!race_reports) return;
  std::vector<Cell>& cells = shadows[resident_of(address)];
  u32 offset = in_block(address, 0) - kSharedBase, start = address - offset;
  for (u32 i = offset / kCellBytes; i <= (offset + bytes - 1) / kCellBytes; ++i)
    function(cells[i], start + i * kCellBytes);
}

// Of a thread that is known as an actor of the cluster that the address lies in.
u32 fences_of(u32 actor, u32 address) {
  u32 first = resident_of(address) / cluster_blocks * cluster_blocks;
  return proxy_fences[first * block.thread_slots() + actor];
}

void require_fence(const Cell& cell, u32 address, const char* what) {
  if (!is_thread(cell.writer) || cell.async_write) return;
  if (fences_of(cell.writer, address) <= cell.writer_fences)
    fail("proxy: ", what, " reads shared address ", hex(address), " through the async proxy, but ",
         actor_name(cell.writer), " wrote it without fence.proxy.async before the barrier");
}

}  // namespace

bool ordered(Moment earlier, const Clock& seen) {
  return earlier.clock != kPending && seen[earlier.actor] >= earlier.clock;
}

void shadow_reset() {
  renew(shadows, machine.blocks);
  for (auto& cells : shadows)
    if (race_reports) cells.resize(block.smem_bytes / kCellBytes + 1);
}

void note_read(u32 address, u32 bytes, Moment by, const Clock& seen, Proxy proxy, const char* what) {
  each_cell(address, bytes, [&](Cell& cell, u32 at) {
    check_writer(cell, at, by, seen, what);
    if (proxy == Proxy::async && cell.writer != kNobody) require_fence(cell, at, what);
    check_readers(cell, at, by, seen, what, cell.updated);
    cell.updated = false;
    add_reader(cell, by, seen);
  });
  visit(address, by);
}

void note_atomic(u32 address, u32 bytes, Moment by, const Clock& seen, const char* what) {
  each_cell(address, bytes, [&](Cell& cell, u32 at) {
    check_writer(cell, at, by, seen, what);
    check_readers(cell, at, by, seen, what, !cell.updated);
    cell.updated = true;
    add_reader(cell, by, seen);
  });
  visit(address, by);
}

void note_write(u32 address, u32 bytes, Moment by, const Clock& seen, Proxy proxy, const char* what) {
  each_cell(address, bytes, [&](Cell& cell, u32 at) {
    check_writer(cell, at, by, seen, what);
    check_readers(cell, at, by, seen, what, true);
    cell.updated = false;
    cell.many.reset();
    cell.readers = 0;
    cell.writer = by.actor;
    cell.write_clock = by.clock;
    cell.async_write = proxy == Proxy::async;
    cell.writer_fences = is_thread(by.actor) ? fences_of(by.actor, at) : 0;
  });
  visit(address, by);
}

void settle_write(u32 address, u32 bytes, u32 thread) {
  each_cell(address, bytes, [&](Cell& cell, u32) {
    if (cell.writer != thread_actor(thread) || cell.write_clock != kPending) return;
    cell.write_clock = now(thread).clock;
    cell.writer_fences = proxy_fences[thread];
  });
}

void settle_read(u32 address, u32 bytes, u32 thread) {
  each_cell(address, bytes, [&](Cell& cell, u32) {
    u32 count;
    Moment* readers = readers_of(cell, count);
    for (u32 i = 0; i < count; ++i)
      if (readers[i].actor == thread_actor(thread) && readers[i].clock == kPending) readers[i] = now(thread);
  });
}

void mark_mbarrier(u32 address, bool is_mbarrier) {
  each_cell(address, 8, [&](Cell& cell, u32) { cell.mbarrier = is_mbarrier; });
}

}  // namespace emulator
