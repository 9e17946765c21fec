// The vector clocks of each resident cluster. Its actors are its threads, then its warps, then its mbarriers, then
// what tensor memory adds; an actor's number is one within its cluster.
#include <algorithm>

#include "emulator/runtime/shared_memory.hpp"
#include "emulator/runtime/tensor_order.hpp"

namespace emulator {

std::vector<u32> proxy_fences;
bool race_reports = true;

namespace {
// Copies that complete on more mbarriers of a block than this share the last actor, and some of their races are missed.
constexpr u32 kMbarriers = 64;
std::vector<Clock> clocks;
std::vector<u32> warp_counts;

u32 first_warp() { return cluster_blocks * block.thread_slots(); }
u32 first_mbarrier() { return first_warp() + cluster_blocks * block.warp_slots(); }
}  // namespace

void clocks_reset() {
  u32 actors = tensor_actors() + 2 * tensor_works();
  clocks.assign(machine.thread_slots(), Clock(race_reports ? actors : 0, 0));
  for (u32 t = 0; t < machine.thread_slots() && race_reports; ++t) clocks[t][thread_actor(t)] = 1;
  warp_counts.assign(machine.warp_slots(), 0);
  proxy_fences.assign(machine.thread_slots(), 0);
}

u32 thread_actor(u32 thread) { return thread % first_warp(); }

u32 warp_actor(u32 warp) { return first_warp() + warp % (cluster_blocks * block.warp_slots()); }

u32 mbarrier_actor(u32 resident, u32 number) {
  return first_mbarrier() + resident % cluster_blocks * kMbarriers + std::min(number, kMbarriers - 1);
}

u32 tensor_actors() { return first_mbarrier() + cluster_blocks * kMbarriers; }

bool is_thread(u32 actor) { return actor < first_warp(); }

Clock& clock_of(u32 thread) { return clocks[thread]; }

Moment now(u32 thread) {
  u32 actor = thread_actor(thread);
  return {actor, race_reports ? clocks[thread][actor] : 0};
}

void release(u32 thread, Clock& into) {
  if (!race_reports) return;
  join(into, clocks[thread]);
  tick(thread);
}

void tick(u32 thread) { ++clocks[thread][thread_actor(thread)]; }

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
  if (!race_reports) return;
  u32& known = clocks[thread][moment.actor];
  known = std::max(known, moment.clock);
}

std::string actor_name(u32 actor) {
  if (is_thread(actor)) return thread_name(actor);
  u32 number = actor - first_warp(), slots = block.warp_slots();
  if (actor < first_mbarrier()) return joined("a collective of warp ", number % slots, of_rank(number / slots));
  if (actor >= tensor_actors()) return "the tensor cores";
  number = actor - first_mbarrier();
  return joined("a copy that completes on mbarrier number ", number % kMbarriers, of_rank(number / kMbarriers));
}

}  // namespace emulator
