// tcgen05.ld and tcgen05.st: a warp's registers and its quarter of the lanes, at some moment between issue and wait.
#include "emulator/runtime/tensor_trace.hpp"
#include "emulator/runtime/warp.hpp"

namespace emulator {

namespace {

constexpr u32 kWarpLanes = 32;

struct Move {
  DataMove form;
  u32 resident, count, lane, column;  // registers of a thread; where the address points

  bool narrow() const { return form.shape != DataShape::of_32x32b; }
  bool halves() const { return form.shape == DataShape::of_16x32bx2; }

  // What it touches: of sixteen lanes twice the columns, in one piece or in two.
  std::vector<Region> regions() const {
    u32 groups = (narrow() ? 1u : 3u) << lane / kGrain;
    if (!halves()) return {{resident, groups, column, narrow() ? 2 * count : count}};
    if (form.split <= count) return {{resident, groups, column, form.split + count}};
    return {{resident, groups, column, count}, {resident, groups, column + form.split, count}};
  }

  // The lane and the column of register i of a thread.
  std::pair<u32, u32> place(u32 t, u32 i) const {
    DataShape shape = form.shape;
    if (shape == DataShape::of_32x32b) return {lane + t, column + i};
    if (shape == DataShape::of_16x32bx2) return {lane + t % 16, column + i + form.split * (t / 16)};
    if (shape == DataShape::of_16x64b) return {lane + t / 4 + 8 * (t % 2), column + t / 2 % 2 + 2 * i};
    if (shape == DataShape::of_16x128b) return {lane + t / 4 + 8 * (i % 2), column + t % 4 + 4 * (i / 2)};
    return {lane + t / 4 + 8 * (i / 2 % 2), column + 2 * (t % 4) + i % 2 + 8 * (i / 4)};
  }
};

struct Moves {
  u32 issued = 0, waited = 0;
  std::vector<Async> open;
};
std::vector<Moves> loads, stores;  // by warp

struct Lane {
  u32* registers;
  u32 address;
};

Move checked(Lane** lanes, u32 count, DataMove form, const char* what) {
  u32 address = lanes[0]->address, quarter = running->warp() % 4 * kWarpLanes;
  for (u32 lane = 1; lane < kWarp; ++lane)
    if (lanes[lane]->address != address) fail(what, ": the lanes of a warp give different addresses");
  Move move{form, running->resident(), count, address >> 16, address & 0xFFFF};
  if (move.lane != quarter && !(move.narrow() && move.lane == quarter + kGrain))
    fail(what, " at lane ", move.lane, ": warp ", running->warp() % block.warp_slots(), " of the block reaches lanes ",
         quarter, " to ", quarter + 31);
  for (const Region& region : move.regions()) require_allocated(region, what);
  return move;
}

TensorWork work_of(const char* what, Queue queue, std::vector<Moves>& all) {
  u32 warp = running->warp();
  return {what, warp * kWarp, queue, warp, ++all[warp].issued};
}

void load(Lane** lanes, u32 count, DataMove form) {
  Move move = checked(lanes, count, form, "tcgen05.ld");
  u32 first = running->warp() * kWarp;
  TensorWork work = work_of("tcgen05.ld", Queue::ld, loads);
  for (const Region& region : move.regions()) {
    trace_tensor(Tensor::load, region);
    note_tensor_read(region, work, knowledge_of(first, kWarp));
  }
  std::vector<u32*> to;
  for (u32 thread = 0; thread < kWarp; ++thread) {
    to.push_back(lanes[thread]->registers);
    std::memset(to.back(), 0xFF, count * sizeof(u32));
  }
  u64 number = next_number();
  loads[running->warp()].open.push_back(start(
      [=] {
        for (u32 thread = 0; thread < kWarp; ++thread)
          for (u32 i = 0; i < count; ++i) {
            auto [lane, column] = move.place(thread, i);
            to[thread][i] = tensor_word(move.resident, lane, column, number);
          }
      },
      false));
}

void store(Lane** lanes, u32 count, DataMove form) {
  Move move = checked(lanes, count, form, "tcgen05.st");
  u32 first = running->warp() * kWarp;
  TensorWork work = work_of("tcgen05.st", Queue::st, stores);
  for (const Region& region : move.regions()) {
    trace_tensor(Tensor::store, region);
    note_tensor_write(region, work, knowledge_of(first, kWarp));
  }
  std::vector<u32> words;
  for (u32 thread = 0; thread < kWarp; ++thread)
    words.insert(words.end(), lanes[thread]->registers, lanes[thread]->registers + count);
  u64 number = next_number();
  for (const Region& region : move.regions()) announce(region, number);
  stores[running->warp()].open.push_back(start(
      [=, words = std::move(words)] {
        for (u32 thread = 0; thread < kWarp; ++thread)
          for (u32 i = 0; i < count; ++i) {
            auto [lane, column] = move.place(thread, i);
            set_tensor_word(move.resident, lane, column, words[thread * count + i]);
          }
        for (const Region& region : move.regions()) finish_write(region, number);
      },
      false));
}

void wait(const char* what, Queue queue, std::vector<Moves>& all) {
  meet(what, kFullMask, [&all, queue] {
    u32 warp = running->warp();
    Moves& moves = all[warp];
    for (Async& each : moves.open) each->finish();
    moves.open.clear();
    moves.waited = moves.issued;
    for (u32 lane = 0; lane < kWarp; ++lane) tensor_knows(warp * kWarp + lane, queue, warp, moves.issued);
  });
}

}  // namespace

void tensor_moves_reset() {
  loads.assign(machine.warp_slots(), Moves{});
  stores.assign(machine.warp_slots(), Moves{});
}

void tensor_moves_thread_finished() {
  u32 warp = running->warp();
  if (loads[warp].waited != loads[warp].issued) fail("the thread ended before tcgen05.wait::ld");
  if (stores[warp].waited != stores[warp].issued) fail("the thread ended before tcgen05.wait::st");
}

void tcgen05_ld(u32* registers, u32 count, DataMove form, u32 address) {
  Lane mine{registers, address};
  collective("tcgen05.ld", kFullMask, mine, [=](Lane** lanes) { load(lanes, count, form); });
}

void tcgen05_st(const u32* registers, u32 count, DataMove form, u32 address) {
  Lane mine{const_cast<u32*>(registers), address};
  collective("tcgen05.st", kFullMask, mine, [=](Lane** lanes) { store(lanes, count, form); });
}

void tcgen05_wait_ld() { wait("tcgen05.wait::ld", Queue::ld, loads); }
void tcgen05_wait_st() { wait("tcgen05.wait::st", Queue::st, stores); }

}  // namespace emulator
