// The state of one emulated block, and the scheduler's verbs. One CUDA thread is one fiber; the block runs on one OS
// thread, so nothing here needs a lock.
#pragma once
#include <cstddef>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "emulator/api.hpp"

namespace emulator {

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// eager: at issue. lazy: as late as the program allows. random: at seeded moments, in any order that is allowed.
enum class Mode : u32 { eager, lazy, random };

constexpr u32 kWarp = 32, kStackBytes = 128 * 1024;

struct Fiber {
  void* stack_pointer = nullptr;
  Place place{};
  u32 thread = 0;
  bool finished = false;
  const char* waits_for = nullptr;
  u32 waits_at = 0;  // which barrier, where there are several

  u32 lane() const { return thread % kWarp; }
  u32 warp() const { return thread / kWarp; }
};

using Waiters = std::vector<Fiber*>;

// A piece of work that the hardware may do now or later. Shared: a queue and a commit group may both hold it.
struct AsyncWork {
  std::function<void()> action;
  bool must_run = true, done = false;

  void finish() {
    if (done) return;
    done = true;
    action();
  }
};
using Async = std::shared_ptr<AsyncWork>;

struct Block {
  Mode mode = Mode::lazy;
  u32 threads = 0, smem_bytes = 0;
  u64 switches = 0;
  std::vector<Fiber> fibers;
  Waiters ready;            // round robin: taken from the front, see `next`
  std::size_t next = 0;     // first of `ready` that has not been taken
  std::vector<Async> work;  // what may run whenever the scheduler likes
  u32 finished = 0, idle_polls = 0;
  std::mt19937_64 random;
  std::string error;
  void* main_stack_pointer = nullptr;
  void (*call)(void* const*) = nullptr;
  void* const* arguments = nullptr;

  u32 warps() const { return (threads + kWarp - 1) / kWarp; }
  u32 lanes(u32 warp) const { return threads - warp * kWarp < kWarp ? threads - warp * kWarp : kWarp; }
};

extern Block block;
extern Fiber* running;

// Throws Failure: the message, then block and thread.
[[noreturn]] void fail(const std::string& message);

void run_block();
// A thread returned from the kernel: what it must not leave behind is checked.
void thread_finished();
void wait_in(Waiters& waiters, const char* what, u32 which = 0);
void wake(Waiters& waiters);
// Give way in a loop that polls; work that is due runs, and a loop that nothing can end is reported.
void poll();
// Hand over work: eager runs it now. `must_run` false: only a wait, or chance, may run it.
Async start(std::function<void()> action, bool must_run);
u64 chance(u64 below);

std::string hex(u64 value);

}  // namespace emulator
