// tcgen05.alloc, dealloc and relinquish_alloc_permit. With cta_group::2 a warp of each block of the pair takes part,
// and both blocks get or give the same columns.
#include <cstring>
#include <map>

#include "emulator/runtime/tensor_trace.hpp"
#include "emulator/runtime/warp.hpp"

namespace emulator {

namespace {

constexpr u32 kLeastColumns = 32;

enum class Verb { alloc, dealloc };
constexpr const char* kNames[] = {"tcgen05.alloc", "tcgen05.dealloc"};

// What a warp of the block asks for, until the other block's has come and there is room.
struct Request {
  bool open = false;
  u32 columns = 0, column = 0, first_thread = 0;
};

struct Allocator {
  u32 group = 0, finished = 0;
  bool relinquished = false;
  u32 owned[kColumns] = {};  // the columns of the allocation that begins here
  Request requests[2];       // by verb
  std::map<u32, u32> given;  // the column of the last request served, by the first thread of its warp
  Waiters waiters;
};
std::vector<Allocator> allocators;  // by resident block

Request& request_of(u32 resident, Verb verb) { return allocators[resident].requests[static_cast<int>(verb)]; }

// The blocks that a request concerns: this one, and its partner in a pair.
std::vector<u32> blocks_of(u32 resident) {
  if (allocators[resident].group == 2) return {resident & ~1u, resident | 1u};
  return {resident};
}

// An allocation may begin wherever other blocks left room: the random mode shows it.
bool find_room(const std::vector<u32>& blocks, u32 columns, u32& column) {
  std::vector<u32> places;
  for (u32 at = 0; at + columns <= kColumns; at += columns) {
    bool room = true;
    for (u32 each : blocks) room = room && columns_free(each, at, columns);
    if (room) places.push_back(at);
  }
  if (places.empty()) return false;
  column = machine.mode == Mode::random ? places[chance(places.size())] : places.front();
  return true;
}

void close(const std::vector<u32>& blocks, Verb verb, u32 column) {
  for (u32 each : blocks) {
    Request& request = request_of(each, verb);
    request.open = false;
    allocators[each].given[request.first_thread] = column;
    wake(allocators[each].waiters);
  }
}

void alloc(const std::vector<u32>& blocks) {
  u32 columns = request_of(blocks[0], Verb::alloc).columns, column;
  if (!find_room(blocks, columns, column)) return;
  for (u32 each : blocks) {
    take_columns(each, column, columns);
    trace_tensor(Tensor::alloc, {each, kAllGroups, column, columns});
    allocators[each].owned[column] = columns;
  }
  close(blocks, Verb::alloc, column);
}

// A request is served when the warps of all its blocks have come; an allocation, when there is room as well.
void serve(u32 resident, Verb verb) {
  std::vector<u32> blocks = blocks_of(resident);
  const Request mine = request_of(resident, verb);
  for (u32 each : blocks) {
    const Request& other = request_of(each, verb);
    if (!other.open) return;
    if (other.columns != mine.columns || other.column != mine.column)
      fail(kNames[static_cast<int>(verb)], ": the blocks of a pair name different columns");
  }
  if (verb == Verb::alloc) return alloc(blocks);
  for (u32 each : blocks) {
    free_columns(each, mine.column, mine.columns, request_of(each, verb).first_thread);
    allocators[each].owned[mine.column] = 0;
    trace_tensor(Tensor::dealloc, {each, kAllGroups, mine.column, mine.columns});
  }
  close(blocks, verb, mine.column);
  serve(resident, Verb::alloc);  // whoever waits for room
}

struct Lane {
  u32 address, columns;
};

void check(Lane** lanes, const char* what) {
  u32 columns = lanes[0]->columns;
  for (u32 lane = 1; lane < kWarp; ++lane)
    if (lanes[lane]->address != lanes[0]->address || lanes[lane]->columns != columns)
      fail(what, ": the lanes of a warp give different operands");
  if (columns < kLeastColumns || columns > kColumns || (columns & (columns - 1)))
    fail(what, " of ", columns, " columns: a power of two from 32 to 512 is needed");
}

// The first column that this block is given, or gives back.
u32 ask(Verb verb, u32 address, u32 columns, u32 column) {
  const char* what = kNames[static_cast<int>(verb)];
  u32 resident = running->resident(), first_thread = running->warp() * kWarp;
  Waiters& waiters = allocators[resident].waiters;
  Request& request = request_of(resident, verb);
  while (request.open) wait_in(waiters, what);  // another warp's
  Lane lane{address, columns};
  collective(what, kFullMask, lane, [&](Lane** lanes) {
    check(lanes, what);
    request = {true, columns, column, first_thread};
    serve(resident, verb);
  });
  while (request.open && request.first_thread == first_thread) wait_in(waiters, what);
  return allocators[resident].given[first_thread];
}

}  // namespace

void check_group(u32 group, const char* what) {
  Allocator& mine = allocators[running->resident()];
  if (mine.group && mine.group != group) fail(what, ": a kernel keeps to one cta_group");
  if (group == 2 && cluster_blocks % 2) fail(what, ": cta_group::2 needs clusters of pairs of blocks");
  mine.group = group;
}

void tcgen05_alloc(u32 shared, u32 columns, u32 group) {
  const char* what = "tcgen05.alloc";
  check_group(group, what);
  if (allocators[running->resident()].relinquished) fail("tcgen05.alloc after tcgen05.relinquish_alloc_permit");
  u32 column = ask(Verb::alloc, shared, columns, 0), warp = running->warp();
  meet("the write of tcgen05.alloc", kFullMask, [&] {
    Moment moment = warp_moment(warp);
    note_write(shared, sizeof column, moment, clock_of(running->thread), Proxy::generic, what);
    warp_knows(warp, moment);
    std::memcpy(shared_at(shared, sizeof column, sizeof column, what), &column, sizeof column);
  });
}

void tcgen05_dealloc(u32 address, u32 columns, u32 group) {
  const char* what = "tcgen05.dealloc";
  check_group(group, what);
  if (address >= kColumns || allocators[running->resident()].owned[address] != columns)
    fail("tcgen05.dealloc of ", columns, " columns at ", hex(address), ", which is no allocation");
  ask(Verb::dealloc, address, columns, address);
}

void tcgen05_relinquish(u32 group) {
  check_group(group, "tcgen05.relinquish_alloc_permit");
  meet("tcgen05.relinquish_alloc_permit", kFullMask, [] { allocators[running->resident()].relinquished = true; });
}

void tensor_alloc_reset() { renew(allocators, machine.blocks); }

void tensor_memory_thread_finished() {
  u32 resident = running->resident(), columns = columns_taken(resident);
  if (++allocators[resident].finished == block.threads && columns)
    fail("the block ended without tcgen05.dealloc of ", columns, " columns");
}

}  // namespace emulator
