// The blocks that are resident together, and the scheduler's verbs. One CUDA thread is one fiber; all of them run on
// one OS thread, so nothing here needs a lock.
//
// Resident are the blocks of one cluster, in the random mode of several. Threads are numbered through all of them, each
// block's from a multiple of a warpgroup on: `thread % 32` is the lane, `thread / 32` a warp of the whole machine, and
// `warp % 4` its place in its warpgroup. What is kept for every thread or warp has machine.thread_slots() or
// machine.warp_slots() entries.
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

constexpr u32 kWarp = 32, kWarpgroup = 128, kStackBytes = 128 * 1024;

// What the blocks of a launch have in common.
struct Shape {
  u32 threads = 0, smem_bytes = 0;

  u32 thread_slots() const { return (threads + kWarpgroup - 1) / kWarpgroup * kWarpgroup; }
  u32 warp_slots() const { return thread_slots() / kWarp; }
  u32 warps() const { return (threads + kWarp - 1) / kWarp; }
  // Of a warp of the machine: the last one of a block may have fewer.
  u32 lanes(u32 warp) const {
    u32 first = warp % warp_slots() * kWarp;
    return threads - first < kWarp ? threads - first : kWarp;
  }
};
extern Shape block;
// Blocks of a cluster; 1 where the launch asks for none.
extern u32 cluster_blocks;

struct Fiber {
  void* stack_pointer = nullptr;
  Place place{};
  u32 cluster = 0;  // number in the grid
  u32 thread = 0;   // of the machine; place.thread is the number within the block
  u32 rank = 1;     // who is ready and has a lower one runs before
  bool finished = false;
  const char* waits_for = nullptr;
  u32 waits_at = 0;  // which barrier, where there are several

  u32 lane() const { return thread % kWarp; }
  u32 warp() const { return thread / kWarp; }
  u32 resident() const { return thread / block.thread_slots(); }  // its block, among those of the machine
};

using Waiters = std::vector<Fiber*>;

// What a launch begins with: so many fresh ones.
template <class T>
void renew(std::vector<T>& all, std::size_t count) {
  all = std::vector<T>(count);
}

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

struct Machine {
  Mode mode = Mode::lazy;
  u64 switches = 0;
  u32 blocks = 0;  // resident, cluster after cluster, by rank within
  std::vector<Fiber> fibers;
  Waiters ready;            // round robin: taken from the front, see `next`; and by rank
  std::size_t next = 0;     // first of `ready` that has not been taken
  std::vector<Async> work;  // what may run whenever the scheduler likes
  u32 finished = 0, idle_polls = 0;
  bool ranked = false;  // not all fibers have one rank
  std::mt19937_64 random;
  std::string error;
  void* main_stack_pointer = nullptr;
  void (*call)(void* const*) = nullptr;
  void* const* arguments = nullptr;

  u32 thread_slots() const { return blocks * block.thread_slots(); }
  u32 warp_slots() const { return blocks * block.warp_slots(); }
};
extern Machine machine;
extern Fiber* running;

// For messages: strings as they are, numbers in decimal.
inline const std::string& as_text(const std::string& text) { return text; }
inline const char* as_text(const char* text) { return text; }
inline std::string as_text(long long number) { return std::to_string(number); }
template <class... Parts>
std::string joined(const Parts&... parts) {
  std::string text;
  ((text += as_text(parts)), ...);
  return text;
}
// Throws Failure: the message, then block and thread.
[[noreturn]] void fail(const std::string& message);
template <class First, class Second, class... Rest>
[[noreturn]] void fail(const First& first, const Second& second, const Rest&... rest) {
  fail(joined(first, second, rest...));
}
// The same where nothing may be thrown: the running fiber is never resumed.
[[noreturn]] void abandon(const std::string& error);

// Run the resident blocks to their end; what was reported is in machine.error.
void run_blocks();
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
std::string coordinates(Dim3 at);
// The grid, counted in clusters; and the place of a number in a grid of this size.
Dim3 clusters();
Dim3 place_in(Dim3 size, u32 number);
// "thread 5", and in a cluster "thread 5 of the block of rank 1".
std::string thread_name(u32 thread);
std::string of_rank(u32 resident);

}  // namespace emulator
