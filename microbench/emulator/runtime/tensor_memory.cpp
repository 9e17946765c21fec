#include "emulator/runtime/tensor_memory.hpp"

#include <algorithm>

namespace emulator {

namespace {

constexpr u32 kGroups = kLanes / kGrain;

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
  bool taken[kColumns] = {};

  TensorMemory() { std::fill_n(&words[0][0], kLanes * kColumns, kNaN); }
};
// By resident block; made where a block first asks: most kernels have none.
std::vector<std::unique_ptr<TensorMemory>> memories;
u64 numbered = 0;

TensorMemory& opened(u32 resident) {
  if (!memories[resident]) memories[resident] = std::make_unique<TensorMemory>();
  return *memories[resident];
}

template <class Function>
void each_cell(const Region& region, Function function) {
  for (u32 group = 0; group < kGroups; ++group)
    for (u32 i = 0; region.groups >> group & 1 && i < region.columns; ++i)
      function(opened(region.resident).cells[group][region.column + i],
               Region{region.resident, 1u << group, region.column + i, 1});
}

}  // namespace

std::string region_name(const Region& region) {
  u32 first = 0, last = kGroups - 1;
  while (!(region.groups >> first & 1)) ++first;
  while (!(region.groups >> last & 1)) --last;
  std::string columns = region.columns == 1
                            ? joined("column ", region.column)
                            : joined("columns ", region.column, " to ", region.column + region.columns - 1);
  return joined("lanes ", first * kGrain, " to ", last * kGrain + kGrain - 1, ", ", columns, " of tensor memory",
                of_rank(region.resident));
}

void require_allocated(const Region& region, const char* what) {
  if (region.column + region.columns > kColumns) fail("out of bounds: ", what, " at ", region_name(region));
  const bool* first = opened(region.resident).taken + region.column;
  if (!std::all_of(first, first + region.columns, [](bool taken) { return taken; }))
    fail("out of bounds: ", what, " at ", region_name(region), ", not all of which are allocated");
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

u64 next_number() { return ++numbered; }

void announce(const Region& region, u64 number) {
  each_cell(region, [number](Cell& cell, const Region&) { cell.to_come.push_back(number); });
}

void finish_write(const Region& region, u64 number) {
  each_cell(region, [number](Cell& cell, const Region&) {
    cell.to_come.erase(std::remove(cell.to_come.begin(), cell.to_come.end(), number), cell.to_come.end());
  });
}

u32 tensor_word(u32 resident, u32 lane, u32 column, u64 number) {
  TensorMemory& memory = opened(resident);
  for (u64 other : memory.cells[lane / kGrain][column].to_come)
    if (other < number) return kNaN;
  return memory.words[lane][column];
}

void set_tensor_word(u32 resident, u32 lane, u32 column, u32 word) { opened(resident).words[lane][column] = word; }

bool columns_free(u32 resident, u32 column, u32 columns) {
  const bool* first = opened(resident).taken + column;
  return std::none_of(first, first + columns, [](bool taken) { return taken; });
}

void take_columns(u32 resident, u32 column, u32 columns) {
  std::fill_n(opened(resident).taken + column, columns, true);
}

void free_columns(u32 resident, u32 column, u32 columns, u32 first_thread) {
  TensorMemory& memory = opened(resident);
  Knowledge knowledge = knowledge_of(first_thread, kWarp);
  each_cell({resident, kAllGroups, column, columns}, [&](Cell& cell, const Region& at) {
    if (cell.written) cell.readers.push_back(cell.writer);
    for (const TensorWork& work : cell.readers)
      if (race_reports && !waited_for(work, knowledge))
        fail("race: tcgen05.dealloc of ", region_name(at), " is not ordered after ", work.what);
    cell = Cell{};
  });
  for (u32 lane = 0; lane < kLanes; ++lane) std::fill_n(&memory.words[lane][column], columns, kNaN);
  std::fill_n(memory.taken + column, columns, false);
}

u32 columns_taken(u32 resident) {
  const auto& memory = memories[resident];
  return memory ? static_cast<u32>(std::count(memory->taken, memory->taken + kColumns, true)) : 0;
}

void tensor_memory_reset() { renew(memories, machine.blocks); }

}  // namespace emulator
