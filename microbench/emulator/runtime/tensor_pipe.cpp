#include "emulator/runtime/tensor_pipe.hpp"

#include <deque>

#include "emulator/runtime/mbarrier.hpp"

namespace emulator {

void tensor_moves_reset();
void tensor_moves_thread_finished();

namespace {

// A product, a copy or the arrival of a commit. `count` works of the pipe are products and copies up to here.
struct Work {
  u64 place;
  u32 count;
  bool commit;
  Clock issued_before;  // works of other pipes whose issue this one is ordered after
  std::function<void()> action;
};

struct Pipe {
  bool used = false;
  u32 thread = 0, issued = 0, committed = 0;
  u64 places = 0;
  std::deque<Work> waiting;
};
std::vector<Pipe> pipes;  // kPipes to a resident block

u32 pipe_of(u32 thread) {
  u32 first = thread / block.thread_slots() * kPipes;
  for (u32 i = first; i < first + kPipes; ++i) {
    if (pipes[i].used && pipes[i].thread != thread) continue;
    pipes[i].used = true;
    pipes[i].thread = thread;
    return i;
  }
  fail("tcgen05.mma by more than 8 threads of a block is not modelled");
}

void execute_works(u32 number, u32 count);

void execute_front(u32 number) {
  Work next = std::move(pipes[number].waiting.front());
  pipes[number].waiting.pop_front();
  u32 cluster = cluster_blocks * kPipes, first = number / cluster * cluster;
  for (u32 other = first; other < first + cluster && !next.commit; ++other)
    if (other != number) execute_works(other, next.issued_before[tensor_index(Queue::issued, other)]);
  next.action();
}

// Up to this product or copy.
void execute_works(u32 number, u32 count) {
  const std::deque<Work>& waiting = pipes[number].waiting;
  while (!waiting.empty() &&
         (waiting.front().count < count || (waiting.front().count == count && !waiting.front().commit)))
    execute_front(number);
}

void execute_to(u32 number, u64 place) {
  const std::deque<Work>& waiting = pipes[number].waiting;
  while (!waiting.empty() && waiting.front().place <= place) execute_front(number);
}

// `must_run`: whether it happens even where nobody asks.
void queue(u32 number, Work work, bool must_run) {
  u64 place = work.place = ++pipes[number].places;
  pipes[number].waiting.push_back(std::move(work));
  start([number, place] { execute_to(number, place); }, must_run);
}

}  // namespace

Ticket take_ticket(const char* what) {
  u32 thread = running->thread, pipe = pipe_of(thread);
  return {{what, thread, Queue::done, pipe, pipes[pipe].issued + 1}, knowledge_of(thread, 1)};
}

Moment ticket_moment(const Ticket& ticket) { return {pipe_actor(ticket.work.owner), ticket.work.count}; }

void enqueue(const Ticket& ticket, std::function<void()> action) {
  u32 pipe = ticket.work.owner, count = ++pipes[pipe].issued;
  tensor_knows(ticket.work.thread, Queue::issued, pipe, count);
  queue(pipe, {0, count, false, ticket.knowledge.known, std::move(action)}, false);
}

void tcgen05_commit(u32 mbarrier, u32 group) {
  check_group(group, "tcgen05.commit");
  u32 thread = running->thread, pipe = pipe_of(thread), count = pipes[pipe].issued;
  pipes[pipe].committed = count;
  copy_joins(mbarrier);
  visit(mbarrier, {pipe_actor(pipe), count});
  Clock clock = committed_clock(thread, pipe, count);
  queue(pipe, {0, count, true, {}, [=] { arrive_later(mbarrier, clock); }}, true);
}

void tcgen05_commit_multicast(u32 mbarrier, u32 ranks, u32 group) {
  const char* what = "tcgen05.commit.multicast::cluster";
  if (!ranks) fail(what, " to no block");
  for (u32 rank = 0; rank < 16; ++rank)
    if (ranks >> rank & 1) tcgen05_commit(in_block(mbarrier, peer(rank, what)), group);
}

void tcgen05_reset() {
  pipes.assign(machine.blocks * kPipes, Pipe{});
  tensor_order_reset();
  tensor_memory_reset();
  tensor_alloc_reset();
  tensor_moves_reset();
}

void tcgen05_thread_finished() {
  for (const Pipe& pipe : pipes)
    if (pipe.used && pipe.thread == running->thread && pipe.issued != pipe.committed)
      fail("the thread ended with a tcgen05.mma or cp that no tcgen05.commit follows");
  tensor_moves_thread_finished();
  tensor_memory_thread_finished();
}

}  // namespace emulator
