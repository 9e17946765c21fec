// The vector clocks of one block: threads, then warps, then mbarriers, then what tensor memory adds.
#include <algorithm>

#include "emulator/runtime/shared_memory.hpp"
#include "emulator/runtime/tensor_order.hpp"

namespace emulator {

std::vector<u32> proxy_fences;
bool race_reports = true;

namespace {
// Copies that complete on more mbarriers than this share the last actor, and some of their races are missed.
constexpr u32 kMbarriers = 64;
std::vector<Clock> clocks;
std::vector<u32> warp_counts;
}  // namespace

void clocks_reset() {
  u32 actors = tensor_actors() + 2 * tensor_works();
  clocks.assign(block.threads, Clock(actors, 0));
  for (u32 t = 0; t < block.threads; ++t) clocks[t][t] = 1;
  warp_counts.assign(block.warps(), 0);
  proxy_fences.assign(block.threads, 0);
}

u32 warp_actor(u32 warp) { return block.threads + warp; }

u32 mbarrier_actor(u32 number) { return block.threads + block.warps() + std::min(number, kMbarriers - 1); }

u32 tensor_actors() { return block.threads + block.warps() + kMbarriers; }

Clock& clock_of(u32 thread) { return clocks[thread]; }

Moment now(u32 thread) { return {thread, clocks[thread][thread]}; }

void release(u32 thread, Clock& into) {
  if (!race_reports) return;
  Clock& mine = clocks[thread];
  join(into, mine);
  ++mine[thread];
}

void acquire(u32 thread, const Clock& from) {
  if (race_reports) join(clocks[thread], from);
}

void join(Clock& into, const Clock& from) {
  if (from.empty()) return;
  if (into.size() != from.size()) into.assign(from.size(), 0);
  for (std::size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

Moment warp_moment(u32 warp) { return {warp_actor(warp), ++warp_counts[warp]}; }

void warp_knows(u32 warp, Moment moment) {
  for (u32 lane = 0; lane < block.lanes(warp); ++lane) thread_knows(warp * kWarp + lane, moment);
}

void thread_knows(u32 thread, Moment moment) {
  u32& known = clocks[thread][moment.actor];
  known = std::max(known, moment.clock);
}

std::string actor_name(u32 actor) {
  if (actor < block.threads) return "thread " + std::to_string(actor);
  actor -= block.threads;
  if (actor < block.warps()) return "a collective of warp " + std::to_string(actor);
  if (actor >= block.warps() + kMbarriers) return "the tensor cores";
  return "a copy that completes on mbarrier number " + std::to_string(actor - block.warps());
}

}  // namespace emulator
