// A fiber's stack and the switch between two stacks: x86-64 and the System V calling convention.
#pragma once
#include <cstddef>

namespace emulator {

// Saves the callee-saved registers and the stack pointer in *save, and goes on where `resume` was saved.
extern "C" void smscope_switch(void** save, void* resume);

// Memory for `count` stacks, an inaccessible page below each. Kept between launches.
char* stacks(std::size_t count);
// Whether `address` lies on one of them.
bool on_a_stack(const void* address);
// The saved stack pointer of a fiber that begins in `entry`.
void* fresh_stack(char* base, void (*entry)());
// The number of the stack whose guard page holds `address`, or -1.
long stack_overflow(const void* address);

}  // namespace emulator
