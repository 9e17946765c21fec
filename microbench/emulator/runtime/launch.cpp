// One launch: the grid's clusters one after another, in the random mode some of them together and in any order; and
// what a plain pointer that left its buffer turns into.
#include <algorithm>
#include <chrono>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <numeric>

#include "emulator/runtime/fiber.hpp"
#include "emulator/runtime/global_memory.hpp"
#include "emulator/runtime/shared_memory.hpp"
#include "emulator/runtime/shared_trace.hpp"

namespace emulator {

void barriers_reset();
void warps_reset();
void copies_reset();
void wgmma_reset();
void tcgen05_reset();
void clusters_reset();
void copies_thread_finished();
void clusters_thread_finished();
void wgmma_thread_finished();
void tcgen05_thread_finished();
void setmaxnreg_reset();

namespace {

constexpr u32 kMostClusterBlocks = 8;  // what every GPU with clusters can launch
// In the random mode: clusters that run together, and the threads beyond which there is only one.
constexpr u32 kMostClusters = 4, kMostTogether = 2048;

std::vector<u32> living;  // threads that have not ended, by resident block

sigjmp_buf fault_exit;
void* fault_address;

void on_fault(int, siginfo_t* information, void*) {
  fault_address = information->si_addr;
  siglongjmp(fault_exit, 1);
}

// Catches faults while a kernel runs, on a stack of its own: the fault may be an overflow of the fiber's.
class FaultGuard {
 public:
  FaultGuard() {
    static char alternate[64 * 1024];
    stack_t stack{};
    stack.ss_sp = alternate;
    stack.ss_size = sizeof alternate;
    sigaltstack(&stack, &old_stack_);
    struct sigaction action{};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &old_segv_);
    sigaction(SIGBUS, &action, &old_bus_);
  }
  ~FaultGuard() {
    sigaction(SIGSEGV, &old_segv_, nullptr);
    sigaction(SIGBUS, &old_bus_, nullptr);
    sigaltstack(&old_stack_, nullptr);
  }

 private:
  stack_t old_stack_{};
  struct sigaction old_segv_{}, old_bus_{};
};

std::string describe_fault() {
  try {
    long stack = stack_overflow(fault_address);
    if (stack >= 0) {
      u32 thread = machine.fibers[static_cast<std::size_t>(stack)].thread;
      fail("the stack of ", thread_name(thread), " overflowed: its arrays are too large");
    }
    fail("out of bounds: ", global_trouble(reinterpret_cast<u64>(fault_address), 0));
  } catch (const Failure& failure) {
    return failure.what();
  }
}

void check_arguments(const Launch& launch, const u32* bytes, u32 count) {
  if (count != launch.argument_count)
    throw Failure(joined("the kernel takes ", count, " arguments, and ", launch.argument_count, " were given"));
  for (u32 i = 0; i < count; ++i)
    if (bytes[i] != launch.argument_bytes[i])
      throw Failure(
          joined("argument ", i, " is of ", launch.argument_bytes[i], " bytes, and the kernel takes ", bytes[i]));
}

void prepare(const Launch& launch) {
  block_dim = {launch.block[0], launch.block[1], launch.block[2]};
  grid_dim = {launch.grid[0], launch.grid[1], launch.grid[2]};
  u64 threads = u64{block_dim.x} * block_dim.y * block_dim.z;
  if (threads < 1 || threads > 1024) throw Failure(joined("a block has 1 to 1024 threads, not ", threads));
  if (launch.smem_bytes > 227 * 1024)
    throw Failure(joined("a block has at most 227 KiB of shared memory, not ", launch.smem_bytes, " bytes"));
  cluster_dim = {launch.cluster[0], launch.cluster[1], launch.cluster[2]};
  cluster_blocks = cluster_dim.x * cluster_dim.y * cluster_dim.z;
  if (cluster_blocks > kMostClusterBlocks)
    throw Failure(joined("a cluster has at most 8 blocks, not ", cluster_blocks));
  if (grid_dim.x % cluster_dim.x || grid_dim.y % cluster_dim.y || grid_dim.z % cluster_dim.z)
    throw Failure("the grid is no multiple of the cluster in every dimension");
  block.threads = static_cast<u32>(threads);
  block.smem_bytes = launch.smem_bytes;
  machine.mode = static_cast<Mode>(launch.mode);
  machine.random.seed(launch.seed);
  machine.switches = 0;
  race_reports = launch.races != 0;
  machine.ranked = launch.favoured_warps[1] || launch.starved_warps[1];
}

// Every cluster of the grid by number, in the order in which they run: no GPU promises any.
std::vector<u32> order_of_clusters() {
  std::vector<u32> order(grid_dim.x * grid_dim.y * grid_dim.z / cluster_blocks);
  std::iota(order.begin(), order.end(), 0u);
  if (machine.mode == Mode::lazy) std::reverse(order.begin(), order.end());
  if (machine.mode == Mode::random) std::shuffle(order.begin(), order.end(), machine.random);
  return order;
}

// How many of the clusters that are left become resident together.
std::size_t next_batch(std::size_t left) {
  if (machine.mode != Mode::random) return 1;
  std::size_t room = std::max(1u, kMostTogether / (cluster_blocks * block.thread_slots()));
  return std::min<std::size_t>({left, room, 1 + chance(kMostClusters)});
}

// Some warps of every block may run whenever they can, and some only where no other one can.
u32 rank_of(const Launch& launch, u32 warp) {
  auto among = [warp](const u32* warps) { return warps[0] <= warp && warp < warps[1]; };
  return among(launch.favoured_warps) ? 0 : among(launch.starved_warps) ? 2 : 1;
}

void admit(const Launch& launch, u32 number) {
  Dim3 at = place_in(clusters(), number);
  for (u32 rank = 0; rank < cluster_blocks; ++rank) {
    Dim3 in = place_in(cluster_dim, rank);
    Dim3 index{at.x * cluster_dim.x + in.x, at.y * cluster_dim.y + in.y, at.z * cluster_dim.z + in.z};
    for (u32 t = 0; t < block.threads; ++t) {
      Fiber fiber;
      fiber.cluster = number;
      fiber.thread = machine.blocks * block.thread_slots() + t;
      fiber.place = {place_in(block_dim, t), index, at, in, rank};
      fiber.rank = rank_of(launch, t / kWarp);
      machine.fibers.push_back(fiber);
    }
    ++machine.blocks;
  }
}

void prepare_blocks(const Launch& launch, const u32* numbers, std::size_t count) {
  machine.fibers.clear();
  machine.blocks = 0;
  for (std::size_t i = 0; i < count; ++i) admit(launch, numbers[i]);
  living.assign(machine.blocks, block.threads);
  shared_reset();
  barriers_reset();
  warps_reset();
  copies_reset();
  clusters_reset();
  wgmma_reset();
  tcgen05_reset();
  setmaxnreg_reset();
}

// Returns the error, empty where there was none.
std::string run_guarded() {
  FaultGuard guard;
  if (sigsetjmp(fault_exit, 1)) return describe_fault();
  run_blocks();
  return machine.error;
}

}  // namespace

void thread_finished() {
  wgmma_thread_finished();
  tcgen05_thread_finished();
  copies_thread_finished();
  if (!--living[running->resident()]) arena_finished(running->resident());
  clusters_thread_finished();
}

int run(Launch& launch, void (*call)(void* const*), const u32* parameter_bytes, u32 parameter_count) {
  std::string error;
  try {
    check_arguments(launch, parameter_bytes, parameter_count);
    prepare(launch);
    machine.call = call;
    machine.arguments = launch.arguments;
    std::vector<u32> order = order_of_clusters();
    global_races_reset(static_cast<u32>(order.size()));
    for (std::size_t done = 0; done < order.size() && error.empty();) {
      std::size_t count = next_batch(order.size() - done);
      prepare_blocks(launch, &order[done], count);
      error = run_guarded();
      shared_trace_flush();
      done += count;
    }
  } catch (const std::exception& failure) {
    error = failure.what();
  }
  running = nullptr;
  machine.work.clear();
  launch.switches = machine.switches;
  std::snprintf(launch.error, launch.error_bytes, "%s", error.c_str());
  return error.empty() ? 0 : 1;
}

long long clock64() { return static_cast<long long>(machine.switches); }

u64 globaltimer() {
  auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<u64>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

}  // namespace emulator
