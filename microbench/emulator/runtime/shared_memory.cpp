// The arenas of the resident blocks: their bytes, who may touch them, and until when.
#include "emulator/runtime/shared_memory.hpp"

#include <algorithm>
#include <cstring>

#include "emulator/runtime/shared_trace.hpp"

namespace emulator {

void clocks_reset();
void shadow_reset();
void mbarriers_reset();

namespace {

struct Arena {
  std::unique_ptr<u8[]> bytes{new u8[kSharedMost]};
  Clock visitors;  // by actor: the last moment at which one of another block had business here
  bool ended = false;
};
std::vector<Arena> arenas;  // by resident block

std::string rank_text(u32 resident) { return joined("the block of rank ", resident % cluster_blocks); }

}  // namespace

void shared_reset() {
  if (arenas.size() < machine.blocks) arenas.resize(machine.blocks);
  for (Arena& arena : arenas) {
    std::memset(arena.bytes.get(), 0xFF, block.smem_bytes);  // NaN in f16, bf16 and f32
    arena.visitors.clear();
    arena.ended = false;
  }
  clocks_reset();
  shadow_reset();
  mbarriers_reset();
}

u32 shared_base() { return kSharedBase | window(); }

u32 peer(u32 rank, const char* what) {
  if (rank >= cluster_blocks) fail(what, ": rank ", rank, " of a cluster of ", cluster_blocks);
  return running->resident() / cluster_blocks * cluster_blocks + rank;
}

u8* landing_at(u32 address, u32 bytes, u32 alignment, const char* what) {
  u32 resident = resident_of(address), offset = in_block(address, 0);
  if (address % alignment) fail(what, ": shared address ", hex(address), " is not a multiple of ", alignment);
  if (resident >= machine.blocks)
    fail("out of bounds: ", what, " at shared address ", hex(address), ", which no block has");
  if (offset < kSharedBase || u64{offset} + bytes > u64{kSharedBase} + block.smem_bytes)
    fail("out of bounds: ", what, " of ", bytes, " bytes at shared offset ",
         static_cast<long long>(offset) - kSharedBase, " of ", block.smem_bytes);
  if (arenas[resident].ended)
    fail("ended: ", what, " at shared address ", hex(address), " of ", rank_text(resident),
         ", which has ended; a cluster barrier keeps it");
  return arenas[resident].bytes.get() + (offset - kSharedBase);
}

u8* cluster_at(u32 address, u32 bytes, u32 alignment, const char* what) {
  if (resident_of(address) / cluster_blocks != running->resident() / cluster_blocks)
    fail("out of bounds: ", what, " at shared address ", hex(address), ", of no block of this cluster");
  return landing_at(address, bytes, alignment, what);
}

u8* shared_at(u32 address, u32 bytes, u32 alignment, const char* what) {
  if (resident_of(address) != running->resident() && resident_of(address) < machine.blocks)
    fail("out of bounds: ", what, " at shared address ", hex(address), ", of another block: it needs shared::cluster");
  return landing_at(address, bytes, alignment, what);
}

void visit(u32 address, Moment by) {
  if (resident_of(address) != running->resident()) keep_until(address, by);
}

void keep_until(u32 address, Moment by) {
  if (!race_reports) return;
  Clock& visitors = arenas[resident_of(address)].visitors;
  if (visitors.empty()) visitors.assign(clock_of(running->thread).size(), 0);
  visitors[by.actor] = std::max(visitors[by.actor], by.clock);
}

void arena_finished(u32 resident) {
  Arena& arena = arenas[resident];
  arena.ended = true;
  if (arena.visitors.empty()) return;
  // It is enough that one thread, the last perhaps, has waited for the visitor.
  Clock seen;
  for (u32 t = 0; t < block.threads; ++t) join(seen, clock_of(resident * block.thread_slots() + t));
  for (u32 actor = 0; actor < seen.size(); ++actor)
    if (seen[actor] < arena.visitors[actor])
      fail("ended: ", rank_text(resident), " ends while ", actor_name(actor),
           " may still use its shared memory; a cluster barrier keeps it");
}

void load_shared(u32 address, void* value, u32 bytes) {
  const u8* from = shared_at(address, bytes, bytes, "ld.shared");
  if (shared_tracing) trace_lane(Shared::load, address, bytes, __builtin_return_address(0));
  note_read(address, bytes, now(running->thread), clock_of(running->thread), Proxy::generic, "ld.shared");
  std::memcpy(value, from, bytes);
}

void store_shared(u32 address, const void* value, u32 bytes) {
  u8* to = shared_at(address, bytes, bytes, "st.shared");
  if (shared_tracing) trace_lane(Shared::store, address, bytes, __builtin_return_address(0));
  note_write(address, bytes, now(running->thread), clock_of(running->thread), Proxy::generic, "st.shared");
  std::memcpy(to, value, bytes);
}

}  // namespace emulator
