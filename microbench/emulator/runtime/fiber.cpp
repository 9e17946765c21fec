#include "emulator/runtime/fiber.hpp"

#include <sys/mman.h>

#include <cstdint>

#include "emulator/runtime/block.hpp"

#if !defined(__x86_64__) || !defined(__linux__)
#error "The emulator switches stacks by hand, for x86-64 Linux only."
#endif

// About 4 ns; swapcontext makes two system calls for the signal mask.
asm(R"(
.text
.globl smscope_switch
.type smscope_switch,@function
smscope_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size smscope_switch,.-smscope_switch
)");

namespace emulator {

namespace {
constexpr std::size_t kPage = 4096, kSlot = kStackBytes + kPage;
char* memory = nullptr;
std::size_t slots = 0;
}  // namespace

char* stacks(std::size_t count) {
  if (count > slots) {
    if (memory) munmap(memory, slots * kSlot);
    void* mapped =
        mmap(nullptr, count * kSlot, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) throw Failure(joined("no memory for the stacks of ", count, " threads"));
    memory = static_cast<char*>(mapped);
    slots = count;
    for (std::size_t i = 0; i < count; ++i) mprotect(memory + i * kSlot, kPage, PROT_NONE);
  }
  return memory;
}

bool on_a_stack(const void* address) {
  auto offset = static_cast<const char*>(address) - memory;
  return offset >= 0 && static_cast<std::size_t>(offset) < slots * kSlot;
}

void* fresh_stack(char* base, void (*entry)()) {
  // Zero registers, the entry as return address, and a null one above it: `entry` finds the alignment of a call.
  void** top = reinterpret_cast<void**>(base + kSlot - 64);
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  return top;
}

long stack_overflow(const void* address) {
  if (!on_a_stack(address)) return -1;
  auto offset = static_cast<const char*>(address) - memory;
  return static_cast<std::size_t>(offset) % kSlot < kPage ? offset / static_cast<long>(kSlot) : -1;
}

}  // namespace emulator
