#include "emulator/runtime/tensor_memory.hpp"

#include <algorithm>

#include "emulator/runtime/warp.hpp"

namespace emulator {

namespace {

constexpr u32 kLeastColumns = 32, kGroups = kLanes / kGrain;

// One column of sixteen lanes.
struct Cell {
  bool written = false;
  TensorWork writer{};
  std::vector<TensorWork> readers;  // since then, the last of each queue
  std::vector<u64> to_come;         // announced writes
};

struct TensorMemory {
  u32 words[kLanes][kColumns];
  Cell cells[kGroups][kColumns];
  u32 owned[kColumns] = {};  // the columns of the allocation that begins here
  bool taken[kColumns] = {};
  bool relinquished = false;
  u32 group = 0;
  u64 number = 0;
  Waiters waiters;

  TensorMemory() { std::fill_n(&words[0][0], kLanes * kColumns, kNaN); }
};
// Made where a block first asks: most kernels have none.
std::unique_ptr<TensorMemory> memory;

TensorMemory& opened() {
  if (!memory) memory = std::make_unique<TensorMemory>();
  return *memory;
}

template <class Function>
void each_cell(const Region& region, Function function) {
  for (u32 group = 0; group < kGroups; ++group)
    for (u32 i = 0; region.groups >> group & 1 && i < region.columns; ++i)
      function(opened().cells[group][region.column + i], Region{1u << group, region.column + i, 1});
}

bool free_at(const TensorMemory& all, u32 column, u32 columns) {
  return std::none_of(all.taken + column, all.taken + column + columns, [](bool taken) { return taken; });
}

// Blocks of an SM share its tensor memory, so that an allocation may begin anywhere: the random mode shows it.
bool find_free(const TensorMemory& all, u32 columns, u32& column) {
  std::vector<u32> places;
  for (u32 at = 0; at + columns <= kColumns; at += columns)
    if (free_at(all, at, columns)) places.push_back(at);
  if (places.empty()) return false;
  column = block.mode == Mode::random ? places[chance(places.size())] : places.front();
  return true;
}

void check_columns(u32 columns, const char* what) {
  if (columns < kLeastColumns || columns > kColumns || (columns & (columns - 1)))
    fail(std::string(what) + " of " + std::to_string(columns) + " columns: a power of two from 32 to 512 is needed");
}

struct Lane {
  u32 address, columns;
};

void check_same(Lane** lanes, const char* what) {
  for (u32 lane = 1; lane < kWarp; ++lane)
    if (lanes[lane]->address != lanes[0]->address || lanes[lane]->columns != lanes[0]->columns)
      fail(std::string(what) + ": the lanes of a warp give different operands");
}

// Whoever frees columns has waited for all that was done to them.
void free_columns(TensorMemory& all, u32 column, u32 columns) {
  Knowledge knowledge = knowledge_of(running->warp() * kWarp, kWarp);
  each_cell({kAllGroups, column, columns}, [&](Cell& cell, const Region& at) {
    if (cell.written) cell.readers.push_back(cell.writer);
    for (const TensorWork& work : cell.readers)
      if (race_reports && !waited_for(work, knowledge))
        fail("race: tcgen05.dealloc of " + region_name(at) + " is not ordered after " + work.what);
    cell = Cell{};
  });
  for (u32 lane = 0; lane < kLanes; ++lane) std::fill_n(&all.words[lane][column], columns, kNaN);
  std::fill_n(all.taken + column, columns, false);
  all.owned[column] = 0;
  wake(all.waiters);
}

}  // namespace

std::string region_name(const Region& region) {
  u32 first = 0, last = kGroups - 1;
  while (!(region.groups >> first & 1)) ++first;
  while (!(region.groups >> last & 1)) --last;
  std::string columns = "columns " + std::to_string(region.column) + " to ";
  return "lanes " + std::to_string(first * kGrain) + " to " + std::to_string(last * kGrain + kGrain - 1) + ", " +
         (region.columns == 1 ? "column " + std::to_string(region.column)
                              : columns + std::to_string(region.column + region.columns - 1)) +
         " of tensor memory";
}

void require_allocated(const Region& region, const char* what) {
  if (region.column + region.columns > kColumns)
    fail(std::string("out of bounds: ") + what + " at " + region_name(region));
  const bool* first = opened().taken + region.column;
  if (!std::all_of(first, first + region.columns, [](bool taken) { return taken; }))
    fail(std::string("out of bounds: ") + what + " at " + region_name(region) + ", not all of which are allocated");
}

void note_tensor_read(const Region& region, const TensorWork& work, const Knowledge& knowledge) {
  if (!race_reports) return;
  each_cell(region, [&](Cell& cell, const Region& at) {
    if (cell.written) require_order(cell.writer, work, knowledge, region_name(at));
    auto same = [&](const TensorWork& each) { return each.queue == work.queue && each.owner == work.owner; };
    auto last = std::find_if(cell.readers.begin(), cell.readers.end(), same);
    if (last == cell.readers.end())
      cell.readers.push_back(work);
    else
      *last = work;
  });
}

void note_tensor_write(const Region& region, const TensorWork& work, const Knowledge& knowledge) {
  if (!race_reports) return;
  each_cell(region, [&](Cell& cell, const Region& at) {
    if (cell.written) require_order(cell.writer, work, knowledge, region_name(at));
    for (const TensorWork& reader : cell.readers) require_order(reader, work, knowledge, region_name(at));
    cell.readers.clear();
    cell.written = true;
    cell.writer = work;
  });
}

u64 next_number() { return ++opened().number; }

u64 announce(const Region& region) {
  u64 number = next_number();
  each_cell(region, [number](Cell& cell, const Region&) { cell.to_come.push_back(number); });
  return number;
}

void finish_write(const Region& region, u64 number) {
  each_cell(region, [number](Cell& cell, const Region&) {
    cell.to_come.erase(std::remove(cell.to_come.begin(), cell.to_come.end(), number), cell.to_come.end());
  });
}

u32 tensor_word(u32 lane, u32 column, u64 number) {
  const TensorMemory& all = opened();
  for (u64 other : all.cells[lane / kGrain][column].to_come)
    if (other < number) return kNaN;
  return all.words[lane][column];
}

void set_tensor_word(u32 lane, u32 column, u32 word) { opened().words[lane][column] = word; }

void check_group(u32 group, const char* what) {
  TensorMemory& all = opened();
  if (all.group && all.group != group) fail(std::string(what) + ": a kernel keeps to one cta_group");
  if (group != 1) fail(std::string(what) + ": cta_group::2 is not modelled");
  all.group = group;
}

void tcgen05_alloc(u32 shared, u32 columns, u32 group) {
  check_group(group, "tcgen05.alloc");
  check_columns(columns, "tcgen05.alloc");
  u32 column;
  while (!find_free(opened(), columns, column)) wait_in(opened().waiters, "tcgen05.alloc");
  Lane mine{shared, columns};
  collective("tcgen05.alloc", kFullMask, mine, [&](Lane** lanes) {
    TensorMemory& all = opened();
    check_same(lanes, "tcgen05.alloc");
    if (all.relinquished) fail("tcgen05.alloc after tcgen05.relinquish_alloc_permit");
    if (!find_free(all, columns, column)) fail("tcgen05.alloc by two warps at once");
    std::fill_n(all.taken + column, columns, true);
    all.owned[column] = columns;
    u32 warp = running->warp();
    Moment moment = warp_moment(warp);
    note_write(shared, sizeof column, moment, clock_of(running->thread), Proxy::generic, "tcgen05.alloc");
    warp_knows(warp, moment);
    std::memcpy(shared_at(shared, sizeof column, sizeof column, "tcgen05.alloc"), &column, sizeof column);
  });
}

void tcgen05_dealloc(u32 address, u32 columns, u32 group) {
  check_group(group, "tcgen05.dealloc");
  check_columns(columns, "tcgen05.dealloc");
  Lane mine{address, columns};
  collective("tcgen05.dealloc", kFullMask, mine, [&](Lane** lanes) {
    check_same(lanes, "tcgen05.dealloc");
    if (address >= kColumns || opened().owned[address] != columns)
      fail("tcgen05.dealloc of " + std::to_string(columns) + " columns at " + hex(address) +
           ", which is no allocation");
    free_columns(opened(), address, columns);
  });
}

void tcgen05_relinquish(u32 group) {
  check_group(group, "tcgen05.relinquish_alloc_permit");
  Lane mine{};
  collective("tcgen05.relinquish_alloc_permit", kFullMask, mine, [](Lane**) { opened().relinquished = true; });
}

void tensor_memory_reset() { memory.reset(); }

void tensor_memory_block_finished() {
  if (!memory) return;
  u32 columns = static_cast<u32>(std::count(memory->taken, memory->taken + kColumns, true));
  if (columns) fail("the block ended without tcgen05.dealloc of " + std::to_string(columns) + " columns");
}

}  // namespace emulator
