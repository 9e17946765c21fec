// Who runs next. Fibers wait in the queue of what they wait for; where nobody is ready, asynchronous work runs; where
// there is none either, the blocks are deadlocked, and the report says who waits for what.
#include <algorithm>
#include <map>

#include "emulator/runtime/block.hpp"
#include "emulator/runtime/fiber.hpp"
#include "emulator/runtime/mbarrier.hpp"

namespace emulator {

Shape block;
u32 cluster_blocks = 1;
Machine machine;
Fiber* running = nullptr;
Place* place = nullptr;
Dim3 block_dim{}, grid_dim{}, cluster_dim{};

namespace {

constexpr std::size_t kSlot = kStackBytes + 4096;
// A polling loop in which nothing happened for this many turns of every thread never ends.
constexpr u32 kIdleTurns = 1000;

void resume(Fiber* fiber) {
  running = fiber;
  place = &fiber->place;
  ++machine.switches;
}

void run_work(std::size_t index) {
  Async work = machine.work[index];
  machine.work.erase(machine.work.begin() + static_cast<std::ptrdiff_t>(index));
  machine.idle_polls = 0;
  work->finish();
}

std::string who_waits() {
  std::map<std::string, u32> counts;
  for (const Fiber& fiber : machine.fibers) {
    std::string at = machine.blocks > 1 ? "block " + coordinates(fiber.place.block) + " " : "";
    at += joined("warp ", fiber.warp() % block.warp_slots(), " ");
    if (fiber.finished)
      at += "finished";
    else
      at += joined("at ", fiber.waits_for ? fiber.waits_for : "a polling loop",
                   fiber.waits_at ? " " + hex(fiber.waits_at) : "", fiber.waits_for ? progress_at(fiber.waits_at) : "");
    ++counts[at];
  }
  std::string text;
  for (const auto& [at, count] : counts) text += joined(text.empty() ? "" : "; ", at, " x", count);
  return text;
}

Fiber* take_ready() {
  std::size_t left = machine.ready.size() - machine.next;
  if (machine.mode == Mode::random) std::swap(machine.ready[machine.next], machine.ready[machine.next + chance(left)]);
  // Who polls is ready without end, and gives way.
  if (machine.ranked && !machine.idle_polls) {
    auto first = machine.ready.begin() + static_cast<std::ptrdiff_t>(machine.next);
    auto found = std::min_element(first, machine.ready.end(), [](Fiber* a, Fiber* b) { return a->rank < b->rank; });
    std::rotate(first, found, found + 1);
  }
  Fiber* fiber = machine.ready[machine.next++];
  if (machine.next == machine.ready.size()) {
    machine.ready.clear();
    machine.next = 0;
  }
  return fiber;
}

Fiber* choose() {
  if (machine.mode == Mode::random && !machine.work.empty() && chance(4) == 0) run_work(chance(machine.work.size()));
  while (machine.next == machine.ready.size()) {
    if (machine.work.empty()) fail("deadlock: ", who_waits());
    run_work(machine.mode == Mode::random ? chance(machine.work.size()) : 0);
  }
  return take_ready();
}

void switch_away() {
  Fiber* from = running;
  Fiber* to = choose();
  if (to == from) return;
  resume(to);
  smscope_switch(&from->stack_pointer, to->stack_pointer);
}

[[noreturn]] void to_main() {
  void* abandoned;
  smscope_switch(&abandoned, machine.main_stack_pointer);
  __builtin_unreachable();
}

void fiber_main() {
  Fiber* next = nullptr;
  try {
    machine.call(machine.arguments);
    thread_finished();
    running->finished = true;
    if (++machine.finished < machine.fibers.size()) next = choose();
  } catch (const std::exception& error) {
    machine.error = error.what();
  }
  if (!next) to_main();
  resume(next);
  void* abandoned;
  smscope_switch(&abandoned, next->stack_pointer);
  __builtin_unreachable();
}

}  // namespace

void run_blocks() {
  char* memory = stacks(machine.fibers.size());
  machine.ready.clear();
  machine.next = 0;
  machine.work.clear();
  machine.finished = machine.idle_polls = 0;
  machine.error.clear();
  for (Fiber& fiber : machine.fibers) {
    fiber.stack_pointer = fresh_stack(memory, fiber_main);
    memory += kSlot;
    machine.ready.push_back(&fiber);
  }
  resume(take_ready());
  smscope_switch(&machine.main_stack_pointer, running->stack_pointer);
  u32 in_flight = 0;
  for (const Async& work : machine.work) in_flight += work->must_run && !work->done;
  if (machine.error.empty() && in_flight)
    machine.error = joined("the block ended with ", in_flight, " asynchronous operations in flight");
  running = nullptr;
}

void abandon(const std::string& error) {
  machine.error = error;
  to_main();
}

void wait_in(Waiters& waiters, const char* what, u32 which) {
  running->waits_for = what;
  running->waits_at = which;
  waiters.push_back(running);
  switch_away();
  running->waits_for = nullptr;
}

void wake(Waiters& waiters) {
  machine.idle_polls = 0;
  machine.ready.insert(machine.ready.end(), waiters.begin(), waiters.end());
  waiters.clear();
}

void poll() {
  if (++machine.idle_polls % (2 * static_cast<u32>(machine.fibers.size())) == 0 && !machine.work.empty()) run_work(0);
  if (machine.idle_polls > kIdleTurns * machine.fibers.size()) fail("livelock: polled without end; ", who_waits());
  machine.ready.push_back(running);
  switch_away();
}

Async start(std::function<void()> action, bool must_run) {
  auto work = std::make_shared<AsyncWork>();
  work->action = std::move(action);
  work->must_run = must_run;
  if (machine.mode == Mode::eager)
    work->finish();
  else if (must_run || machine.mode == Mode::random)
    machine.work.push_back(work);
  return work;
}

u64 chance(u64 below) { return machine.random() % below; }

void fail(const std::string& message) {
  std::string where = " [block";
  if (running) {
    const Dim3& t = running->place.thread;
    where += joined(" ", coordinates(running->place.block), " thread ", t.x);
    if (block_dim.y * block_dim.z > 1) where += joined(",", t.y, ",", t.z);
  }
  throw Failure(joined(message, where, "]"));
}

void fail(const char* message) { fail(std::string(message)); }

std::string of_rank(u32 resident) {
  return cluster_blocks > 1 ? joined(" of the block of rank ", resident % cluster_blocks) : "";
}

std::string thread_name(u32 thread) {
  return joined("thread ", thread % block.thread_slots(), of_rank(thread / block.thread_slots()));
}

Dim3 clusters() { return {grid_dim.x / cluster_dim.x, grid_dim.y / cluster_dim.y, grid_dim.z / cluster_dim.z}; }

Dim3 place_in(Dim3 size, u32 number) { return {number % size.x, number / size.x % size.y, number / (size.x * size.y)}; }

std::string coordinates(Dim3 at) { return joined(at.x, ",", at.y, ",", at.z); }

std::string hex(u64 value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", value);
  return text;
}

}  // namespace emulator
