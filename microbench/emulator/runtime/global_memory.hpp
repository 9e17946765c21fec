// Bounds of global memory.
#pragma once
#include "emulator/runtime/block.hpp"

namespace emulator {

// Bounds and alignment of an access by a wrapper or by asynchronous work.
u8* global_at(u64 address, u32 bytes, u32 alignment, const char* what);
// What is wrong with an address, for a message.
std::string global_trouble(u64 address, u64 bytes);

}  // namespace emulator
