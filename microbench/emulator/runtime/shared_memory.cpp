#include "emulator/runtime/shared_memory.hpp"

#include <algorithm>
#include <cstring>

namespace emulator {

void clocks_reset();
void mbarriers_reset();

namespace {

constexpr u32 kCellBytes = 4, kFew = 3, kNobody = ~0u;

// What happened last to four bytes. Readers since the last write: a few here, more of them in `many`.
struct Cell {
  u32 writer = kNobody, write_clock = 0, writer_fences = 0;
  bool async_write = false, mbarrier = false;
  u32 readers = 0;
  Moment few[kFew];
  std::unique_ptr<std::vector<Moment>> many;
};

alignas(1024) u8 memory[kSharedMost];
std::vector<Cell> cells;

[[noreturn]] void report(u32 address, Moment by, const char* what, const char* earlier_kind, Moment earlier) {
  std::string text = std::string("race: ") + what + " by " + actor_name(by.actor) + " at shared address " +
                     hex(address) + " is not ordered after the " + earlier_kind + " by " + actor_name(earlier.actor);
  if (earlier.clock == kPending) text += ", a copy that has not been waited for";
  fail(text);
}

// An actor is in order with itself, except with its own pending copies.
bool unordered(Moment earlier, Moment by, const Clock& seen) {
  return (earlier.actor != by.actor || earlier.clock == kPending) && !ordered(earlier, seen);
}

void check_writer(Cell& cell, u32 address, Moment by, const Clock& seen, const char* what) {
  if (cell.mbarrier) fail(std::string(what) + " at shared address " + hex(address) + " touches an mbarrier");
  Moment last{cell.writer, cell.write_clock};
  if (cell.writer != kNobody && unordered(last, by, seen)) report(address, by, what, "write", last);
}

Moment* readers_of(Cell& cell, u32& count) {
  count = cell.many ? static_cast<u32>(cell.many->size()) : cell.readers;
  return cell.many ? cell.many->data() : cell.few;
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
  u32 first = (address - kSharedBase) / kCellBytes, last = (address + bytes - 1 - kSharedBase) / kCellBytes;
  for (u32 i = first; i <= last; ++i) function(cells[i], kSharedBase + i * kCellBytes);
}

void require_fence(const Cell& cell, u32 address, const char* what) {
  if (cell.writer >= block.threads || cell.async_write) return;
  if (proxy_fences[cell.writer] <= cell.writer_fences)
    fail(std::string("proxy: ") + what + " reads shared address " + hex(address) + " through the async proxy, but " +
         actor_name(cell.writer) + " wrote it without fence.proxy.async before the barrier");
}

}  // namespace

bool ordered(Moment earlier, const Clock& seen) {
  return earlier.clock != kPending && seen[earlier.actor] >= earlier.clock;
}

void shared_reset() {
  std::memset(memory, 0xFF, block.smem_bytes);  // NaN in f16, bf16 and f32
  cells.clear();
  if (race_reports) cells.resize(block.smem_bytes / kCellBytes + 1);
  clocks_reset();
  mbarriers_reset();
}

u32 shared_base() { return kSharedBase; }

u8* shared_at(u32 address, u32 bytes, u32 alignment, const char* what) {
  if (address % alignment)
    fail(std::string(what) + ": shared address " + hex(address) + " is not a multiple of " + std::to_string(alignment));
  if (address < kSharedBase || u64{address} + bytes > u64{kSharedBase} + block.smem_bytes)
    fail("out of bounds: " + std::string(what) + " of " + std::to_string(bytes) + " bytes at shared offset " +
         std::to_string(static_cast<long long>(address) - kSharedBase) + " of " + std::to_string(block.smem_bytes));
  return memory + (address - kSharedBase);
}

void note_read(u32 address, u32 bytes, Moment by, const Clock& seen, Proxy proxy, const char* what) {
  if (!race_reports) return;
  each_cell(address, bytes, [&](Cell& cell, u32 at) {
    check_writer(cell, at, by, seen, what);
    if (proxy == Proxy::async && cell.writer != kNobody) require_fence(cell, at, what);
    add_reader(cell, by, seen);
  });
}

void note_write(u32 address, u32 bytes, Moment by, const Clock& seen, Proxy proxy, const char* what) {
  if (!race_reports) return;
  each_cell(address, bytes, [&](Cell& cell, u32 at) {
    check_writer(cell, at, by, seen, what);
    u32 count;
    Moment* readers = readers_of(cell, count);
    for (u32 i = 0; i < count; ++i)
      if (unordered(readers[i], by, seen)) report(at, by, what, "read", readers[i]);
    cell.many.reset();
    cell.readers = 0;
    cell.writer = by.actor;
    cell.write_clock = by.clock;
    cell.async_write = proxy == Proxy::async;
    cell.writer_fences = by.actor < block.threads ? proxy_fences[by.actor] : 0;
  });
}

void settle_write(u32 address, u32 bytes, u32 thread) {
  if (!race_reports) return;
  each_cell(address, bytes, [&](Cell& cell, u32) {
    if (cell.writer != thread || cell.write_clock != kPending) return;
    cell.write_clock = now(thread).clock;
    cell.writer_fences = proxy_fences[thread];
  });
}

void settle_read(u32 address, u32 bytes, u32 thread) {
  if (!race_reports) return;
  each_cell(address, bytes, [&](Cell& cell, u32) {
    u32 count;
    Moment* readers = readers_of(cell, count);
    for (u32 i = 0; i < count; ++i)
      if (readers[i].actor == thread && readers[i].clock == kPending) readers[i] = now(thread);
  });
}

void mark_mbarrier(u32 address, bool is_mbarrier) {
  if (!race_reports) return;
  each_cell(address, 8, [&](Cell& cell, u32) { cell.mbarrier = is_mbarrier; });
}

void load_shared(u32 address, void* value, u32 bytes) {
  const u8* from = shared_at(address, bytes, bytes, "ld.shared");
  note_read(address, bytes, now(running->thread), clock_of(running->thread), Proxy::generic, "ld.shared");
  std::memcpy(value, from, bytes);
}

void store_shared(u32 address, const void* value, u32 bytes) {
  u8* to = shared_at(address, bytes, bytes, "st.shared");
  note_write(address, bytes, now(running->thread), clock_of(running->thread), Proxy::generic, "st.shared");
  std::memcpy(to, value, bytes);
}

}  // namespace emulator
