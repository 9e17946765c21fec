// A trace of shared memory, by warp instruction: what each access costs in wavefronts, where a GPU's banks are.
//
// Shared memory has 32 banks of 4 bytes. An access of a warp goes in phases of at most 128 bytes: all lanes at 4 bytes or
// less, half of them at 8, a quarter at 16, the eight rows of a matrix for ldmatrix. A phase takes as many wavefronts as
// a bank has different words to give (CUDA C++ Programming Guide, 'Shared Memory'; smem_bank_conflicts measures it).
// Lanes run one after another here. They are of one instruction where they come from the same place in the code for the
// same time.
#pragma once
#include "emulator/api.hpp"

namespace emulator {

enum class Shared : u32 { load, store };

// A row of the trace, as Python reads it. `lowest` is the offset of the lowest byte in the block's shared memory.
struct SharedAccess {
  u32 kind, bytes, lanes, lowest, phases, wavefronts;
};

extern bool shared_tracing;

// One lane's access of 1 to 16 bytes; `site` is its place in the code.
void trace_lane(Shared kind, u32 address, u32 bytes, const void* site);
// A matrix instruction: `rows` addresses of 16 bytes, eight to a phase.
void trace_rows(Shared kind, const u32* rows, u32 count);
// Instructions that some lanes skipped are complete where the blocks end.
void shared_trace_flush();

}  // namespace emulator
