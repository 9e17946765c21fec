#include "emulator/runtime/tensor_order.hpp"

#include <algorithm>

namespace emulator {

namespace {

std::vector<Clock> known;  // by thread

bool reaches(const Clock& counts, const TensorWork& work) {
  return counts[tensor_index(work.queue, work.owner)] >= work.count;
}

// Products and copies execute in the order of their issue, where that is an order.
bool pipelined(const Clock& counts, const TensorWork& earlier, const TensorWork& later) {
  return earlier.queue == Queue::done && later.queue == Queue::done &&
         counts[tensor_index(Queue::issued, earlier.owner)] >= earlier.count;
}

std::string name(const TensorWork& work) {
  if (work.queue == Queue::done) return joined(work.what, " by ", thread_name(work.thread));
  u32 slots = block.warp_slots();
  return joined(work.what, " by warp ", work.owner % slots, of_rank(work.owner / slots));
}

}  // namespace

u32 tensor_works() { return 2 * cluster_blocks * (block.warp_slots() + kPipes); }

u32 tensor_index(Queue queue, u32 owner) {
  u32 warps = cluster_blocks * block.warp_slots(), pipes = cluster_blocks * kPipes;
  if (queue == Queue::ld) return owner % warps;
  if (queue == Queue::st) return warps + owner % warps;
  return 2 * warps + (queue == Queue::done ? 0 : pipes) + owner % pipes;
}

u32 pipe_actor(u32 pipe) { return tensor_actors() + tensor_index(Queue::done, pipe); }

void tensor_order_reset() { known.assign(machine.thread_slots(), Clock(tensor_works(), 0)); }

Knowledge knowledge_of(u32 first_thread, u32 lanes) {
  u32 works = tensor_works();
  if (!race_reports) return {{}, {}, known[first_thread]};
  Knowledge all{Clock(works, ~0u), Clock(works, ~0u), Clock(works, ~0u)};
  for (u32 thread = first_thread; thread < first_thread + lanes; ++thread) {
    const u32* waited = clock_of(thread).data() + tensor_actors();
    for (u32 i = 0; i < works; ++i) {
      all.waited[i] = std::min(all.waited[i], waited[i]);
      all.fenced[i] = std::min(all.fenced[i], waited[works + i]);
      all.known[i] = std::min(all.known[i], known[thread][i]);
    }
  }
  return all;
}

void tensor_knows(u32 thread, Queue queue, u32 owner, u32 count) {
  u32 index = tensor_index(queue, owner);
  if (race_reports) clock_of(thread)[tensor_actors() + index] = count;
  known[thread][index] = count;
}

void tcgen05_fence_before() {
  if (!race_reports) return;
  u32* fenced = clock_of(running->thread).data() + tensor_actors() + tensor_works();
  for (u32 i = 0; i < tensor_works(); ++i) fenced[i] = std::max(fenced[i], known[running->thread][i]);
}

void tcgen05_fence_after() {
  if (!race_reports) return;
  const u32* fenced = clock_of(running->thread).data() + tensor_actors() + tensor_works();
  for (u32 i = 0; i < tensor_works(); ++i) known[running->thread][i] = std::max(known[running->thread][i], fenced[i]);
}

Clock committed_clock(u32 thread, u32 pipe, u32 count) {
  Clock clock;
  release(thread, clock);
  if (clock.empty()) return clock;  // no race reports: nobody asks
  u32 works = tensor_works(), done = tensor_index(Queue::done, pipe);
  u32* waited = clock.data() + tensor_actors();
  u32* fenced = waited + works;
  for (u32 i = 0; i < works; ++i) fenced[i] = std::max(fenced[i], known[thread][i]);
  waited[done] = std::max(waited[done], count);
  fenced[done] = std::max(fenced[done], count);
  return clock;
}

void require_order(const TensorWork& earlier, const TensorWork& later, const Knowledge& knowledge,
                   const std::string& where) {
  if (reaches(knowledge.known, earlier) || pipelined(knowledge.known, earlier, later)) return;
  std::string who = joined(name(later), " touches ", where, " after ", name(earlier));
  if (reaches(knowledge.fenced, earlier) || pipelined(knowledge.fenced, earlier, later))
    fail("fence: ", who, ", which was waited for without tcgen05.fence::after_thread_sync");
  if (reaches(knowledge.waited, earlier) || pipelined(knowledge.waited, earlier, later))
    fail("fence: ", who, ", which did not execute tcgen05.fence::before_thread_sync before the barrier");
  bool open = earlier.queue != Queue::done && !reaches(known[earlier.thread], earlier);
  fail("race: ", name(later), " at ", where, " is not ordered after ", name(earlier),
       (open ? ", which its warp has not waited for" : ""));
}

bool waited_for(const TensorWork& earlier, const Knowledge& knowledge) {
  return reaches(knowledge.waited, earlier) || reaches(knowledge.known, earlier);
}

}  // namespace emulator
