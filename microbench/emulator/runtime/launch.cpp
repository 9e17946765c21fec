// One launch: the grid's blocks one after another, and what a plain pointer that left its buffer turns into.
#include <chrono>
#include <csetjmp>
#include <csignal>
#include <cstring>

#include "emulator/runtime/fiber.hpp"
#include "emulator/runtime/global_memory.hpp"
#include "emulator/runtime/shared_memory.hpp"

namespace emulator {

void barriers_reset();
void warps_reset();
void copies_reset();
void wgmma_reset();
void tcgen05_reset();
void copies_thread_finished();
void wgmma_thread_finished();
void tcgen05_thread_finished();
void setmaxnreg_reset();

namespace {

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
    long thread = stack_overflow(fault_address);
    if (thread >= 0) fail("the stack of thread " + std::to_string(thread) + " overflowed: its arrays are too large");
    fail("out of bounds: " + global_trouble(reinterpret_cast<u64>(fault_address), 0));
  } catch (const Failure& failure) {
    return failure.what();
  }
}

void check_arguments(const Launch& launch, const u32* bytes, u32 count) {
  if (count != launch.argument_count)
    throw Failure("the kernel takes " + std::to_string(count) + " arguments, and " +
                  std::to_string(launch.argument_count) + " were given");
  for (u32 i = 0; i < count; ++i)
    if (bytes[i] != launch.argument_bytes[i])
      throw Failure("argument " + std::to_string(i) + " is of " + std::to_string(launch.argument_bytes[i]) +
                    " bytes, and the kernel takes " + std::to_string(bytes[i]));
}

void prepare(const Launch& launch) {
  block_dim = {launch.block[0], launch.block[1], launch.block[2]};
  grid_dim = {launch.grid[0], launch.grid[1], launch.grid[2]};
  u64 threads = u64{block_dim.x} * block_dim.y * block_dim.z;
  if (threads < 1 || threads > 1024) throw Failure("a block has 1 to 1024 threads, not " + std::to_string(threads));
  if (launch.smem_bytes > 227 * 1024)
    throw Failure("a block has at most 227 KiB of shared memory, not " + std::to_string(launch.smem_bytes) + " bytes");
  block.mode = static_cast<Mode>(launch.mode);
  block.threads = static_cast<u32>(threads);
  block.smem_bytes = launch.smem_bytes;
  block.random.seed(launch.seed);
  block.switches = 0;
  race_reports = launch.races != 0;
}

void prepare_block(Dim3 index) {
  block.fibers.assign(block.threads, Fiber{});
  for (u32 t = 0; t < block.threads; ++t) {
    Dim3 at{t % block_dim.x, t / block_dim.x % block_dim.y, t / (block_dim.x * block_dim.y)};
    block.fibers[t].thread = t;
    block.fibers[t].place = {at, index};
  }
  shared_reset();
  barriers_reset();
  warps_reset();
  copies_reset();
  wgmma_reset();
  tcgen05_reset();
  setmaxnreg_reset();
}

// Returns the error, empty where there was none.
std::string run_guarded() {
  FaultGuard guard;
  if (sigsetjmp(fault_exit, 1)) return describe_fault();
  run_block();
  return block.error;
}

}  // namespace

void thread_finished() {
  wgmma_thread_finished();
  tcgen05_thread_finished();
  copies_thread_finished();
}

int run(Launch& launch, void (*call)(void* const*), const u32* parameter_bytes, u32 parameter_count) {
  std::string error;
  try {
    check_arguments(launch, parameter_bytes, parameter_count);
    prepare(launch);
    block.call = call;
    block.arguments = launch.arguments;
    for (u32 z = 0; z < grid_dim.z && error.empty(); ++z)
      for (u32 y = 0; y < grid_dim.y && error.empty(); ++y)
        for (u32 x = 0; x < grid_dim.x && error.empty(); ++x) {
          prepare_block({x, y, z});
          error = run_guarded();
        }
  } catch (const std::exception& failure) {
    error = failure.what();
  }
  running = nullptr;
  block.work.clear();
  launch.switches = block.switches;
  std::snprintf(launch.error, launch.error_bytes, "%s", error.c_str());
  return error.empty() ? 0 : 1;
}

long long clock64() { return static_cast<long long>(block.switches); }

u64 globaltimer() {
  auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<u64>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

}  // namespace emulator
