// Who runs next. Fibers wait in the queue of what they wait for; where nobody is ready, asynchronous work runs; where
// there is none either, the block is deadlocked, and the report says who waits for what.
#include <map>

#include "emulator/runtime/block.hpp"
#include "emulator/runtime/fiber.hpp"

namespace emulator {

Block block;
Fiber* running = nullptr;
Place* place = nullptr;
Dim3 block_dim{}, grid_dim{};

namespace {

constexpr std::size_t kSlot = kStackBytes + 4096;
// A polling loop in which nothing happened for this many turns of every thread never ends.
constexpr u32 kIdleTurns = 1000;

void resume(Fiber* fiber) {
  running = fiber;
  place = &fiber->place;
  ++block.switches;
}

void run_work(std::size_t index) {
  Async work = block.work[index];
  block.work.erase(block.work.begin() + static_cast<std::ptrdiff_t>(index));
  block.idle_polls = 0;
  work->finish();
}

std::string who_waits() {
  std::map<std::string, u32> counts;
  for (const Fiber& fiber : block.fibers) {
    std::string at = "warp " + std::to_string(fiber.warp()) + " ";
    if (fiber.finished)
      at += "finished";
    else
      at += std::string("at ") + (fiber.waits_for ? fiber.waits_for : "a polling loop") +
            (fiber.waits_at ? " " + hex(fiber.waits_at) : "");
    ++counts[at];
  }
  std::string text;
  for (const auto& [at, count] : counts) text += (text.empty() ? "" : "; ") + at + " x" + std::to_string(count);
  return text;
}

Fiber* take_ready() {
  std::size_t left = block.ready.size() - block.next;
  if (block.mode == Mode::random) std::swap(block.ready[block.next], block.ready[block.next + chance(left)]);
  Fiber* fiber = block.ready[block.next++];
  if (block.next == block.ready.size()) {
    block.ready.clear();
    block.next = 0;
  }
  return fiber;
}

Fiber* choose() {
  if (block.mode == Mode::random && !block.work.empty() && chance(4) == 0) run_work(chance(block.work.size()));
  while (block.next == block.ready.size()) {
    if (block.work.empty()) fail("deadlock: " + who_waits());
    run_work(block.mode == Mode::random ? chance(block.work.size()) : 0);
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

void to_main() {
  void* abandoned;
  smscope_switch(&abandoned, block.main_stack_pointer);
  __builtin_unreachable();
}

void fiber_main() {
  Fiber* next = nullptr;
  try {
    block.call(block.arguments);
    thread_finished();
    running->finished = true;
    if (++block.finished < block.threads) next = choose();
  } catch (const std::exception& error) {
    block.error = error.what();
    next = nullptr;
  }
  if (!next) to_main();
  resume(next);
  void* abandoned;
  smscope_switch(&abandoned, next->stack_pointer);
  __builtin_unreachable();
}

}  // namespace

void run_block() {
  char* memory = stacks(block.threads);
  block.ready.clear();
  block.next = 0;
  block.work.clear();
  block.finished = block.idle_polls = 0;
  block.error.clear();
  for (Fiber& fiber : block.fibers) {
    fiber.stack_pointer = fresh_stack(memory + fiber.thread * kSlot, fiber_main);
    block.ready.push_back(&fiber);
  }
  resume(take_ready());
  smscope_switch(&block.main_stack_pointer, running->stack_pointer);
  u32 in_flight = 0;
  for (const Async& work : block.work) in_flight += work->must_run && !work->done;
  if (block.error.empty() && in_flight)
    block.error = "the block ended with " + std::to_string(in_flight) + " asynchronous operations in flight";
  running = nullptr;
}

void wait_in(Waiters& waiters, const char* what, u32 which) {
  running->waits_for = what;
  running->waits_at = which;
  waiters.push_back(running);
  switch_away();
  running->waits_for = nullptr;
}

void wake(Waiters& waiters) {
  block.idle_polls = 0;
  block.ready.insert(block.ready.end(), waiters.begin(), waiters.end());
  waiters.clear();
}

void poll() {
  if (++block.idle_polls % (2 * block.threads) == 0 && !block.work.empty()) run_work(0);
  if (block.idle_polls > kIdleTurns * block.threads) fail("livelock: polled without end; " + who_waits());
  block.ready.push_back(running);
  switch_away();
}

Async start(std::function<void()> action, bool must_run) {
  auto work = std::make_shared<AsyncWork>();
  work->action = std::move(action);
  work->must_run = must_run;
  if (block.mode == Mode::eager)
    work->finish();
  else if (must_run || block.mode == Mode::random)
    block.work.push_back(work);
  return work;
}

u64 chance(u64 below) { return block.random() % below; }

void fail(const std::string& message) {
  std::string where = " [block";
  if (running) {
    const Dim3 &b = running->place.block, &t = running->place.thread;
    where += " " + std::to_string(b.x) + "," + std::to_string(b.y) + "," + std::to_string(b.z) + " thread " +
             std::to_string(t.x);
    if (block_dim.y * block_dim.z > 1) where += "," + std::to_string(t.y) + "," + std::to_string(t.z);
  }
  throw Failure(message + where + "]");
}

void fail(const char* message) { fail(std::string(message)); }

std::string hex(u64 value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", value);
  return text;
}

}  // namespace emulator
