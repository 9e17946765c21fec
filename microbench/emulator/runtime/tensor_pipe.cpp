#include "emulator/runtime/tensor_pipe.hpp"

#include <deque>

#include "emulator/runtime/mbarrier.hpp"

namespace emulator {

void tensor_moves_reset();
void tensor_moves_thread_finished();

namespace {

struct Work {
  u32 count;
  Clock issued_before;  // works of other pipes whose issue this one is ordered after
  std::function<void()> action;
};

struct Pipe {
  u32 thread, issued = 0, committed = 0;
  std::deque<Work> waiting;
};
std::vector<Pipe> pipes;
u32 finished_threads;

u32 pipe_of(u32 thread) {
  for (u32 i = 0; i < pipes.size(); ++i)
    if (pipes[i].thread == thread) return i;
  if (pipes.size() == kPipes) fail("tcgen05.mma by more than 8 threads of a block is not modelled");
  pipes.push_back({thread, 0, 0, {}});
  return static_cast<u32>(pipes.size() - 1);
}

void execute(u32 number, u32 count) {
  Pipe& pipe = pipes[number];
  while (!pipe.waiting.empty() && pipe.waiting.front().count <= count) {
    Work next = std::move(pipe.waiting.front());
    pipe.waiting.pop_front();
    for (u32 other = 0; other < pipes.size(); ++other)
      if (other != number) execute(other, next.issued_before[tensor_index(Queue::issued, other)]);
    next.action();
  }
}

}  // namespace

Ticket take_ticket(const char* what) {
  u32 thread = running->thread, pipe = pipe_of(thread);
  return {{what, thread, Queue::done, pipe, pipes[pipe].issued + 1}, knowledge_of(thread, 1)};
}

Moment ticket_moment(const Ticket& ticket) { return {pipe_actor(ticket.work.owner), ticket.work.count}; }

void enqueue(const Ticket& ticket, std::function<void()> action) {
  u32 pipe = ticket.work.owner, count = ++pipes[pipe].issued;
  pipes[pipe].waiting.push_back({count, ticket.knowledge.known, std::move(action)});
  tensor_knows(ticket.work.thread, Queue::issued, pipe, count);
  start([pipe, count] { execute(pipe, count); }, false);
}

void tcgen05_commit(u32 mbarrier, u32 group) {
  check_group(group, "tcgen05.commit");
  u32 thread = running->thread, pipe = pipe_of(thread), count = pipes[pipe].issued;
  pipes[pipe].committed = count;
  copy_joins(mbarrier);
  start(
      [=, clock = committed_clock(thread, pipe, count)] {
        execute(pipe, count);
        arrive_later(mbarrier, clock);
      },
      true);
}

void tcgen05_reset() {
  pipes.clear();
  finished_threads = 0;
  tensor_order_reset();
  tensor_memory_reset();
  tensor_moves_reset();
}

void tcgen05_thread_finished() {
  for (const Pipe& pipe : pipes)
    if (pipe.thread == running->thread && pipe.issued != pipe.committed)
      fail("the thread ended with a tcgen05.mma or cp that no tcgen05.commit follows");
  tensor_moves_thread_finished();
  if (++finished_threads == block.threads) tensor_memory_block_finished();
}

}  // namespace emulator
