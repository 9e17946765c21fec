// Global memory: its bounds, and who touched it.
#pragma once
#include "emulator/runtime/block.hpp"

namespace emulator {

enum class Access : u8 { read, write, update };  // an update is atomic

// Bounds and alignment of an access by a wrapper or by asynchronous work; the running thread is told to race_report.
u8* global_at(u64 address, u32 bytes, u32 alignment, const char* what);
// What is wrong with an address, or where in its buffer it is, for a message.
std::string global_trouble(u64 address, u64 bytes);

// Tell of an access by the running thread. Fails where another's conflicts and nothing orders the two. Addresses
// outside of every buffer are nobody's.
void note_global(u64 address, u64 bytes, Access access);
// A new launch: whatever ran before it is over.
void global_races_reset(u32 clusters);

// Who wrote or read some of four bytes last. `who` is the number of a cluster, from 1 on; 0 is nobody.
struct GlobalTouch {
  u32 who, epoch, update;  // what other clusters may have heard of
  u32 actor, clock;        // the same for those of the cluster itself
  u32 mask;                // of the bytes
};
struct GlobalCell {
  GlobalTouch writer, readers[2];
  bool updated;  // the write was an atomic update
};
// The cells of the buffer that holds `address`, which begins at `start`; null where there is none.
GlobalCell* global_cells(u64 address, u64& start);
void global_cells_reset();

}  // namespace emulator
