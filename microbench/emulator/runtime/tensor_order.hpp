// When one access to tensor memory is ordered after another. tcgen05.ld, st, mma and cp are asynchronous: a barrier
// alone orders none of them. Their works are counted where they queue: the loads and the stores of each warp, and the
// products and copies of each thread that issues some (a pipe). What a thread knows of these counts is kept three
// times:
//
//   waited   in its clock: by barriers alone, as of any other actor
//   fenced   in its clock too: what tcgen05.fence::before_thread_sync, or a commit, put into the barriers on the way
//   known    what its next tcgen05 instruction is ordered after: its own waits, and by tcgen05.fence::after_thread_sync
//            all that is fenced
//
// A missing fence is where a work is waited for or fenced, but not known (PTX ISA, 'Memory consistency model for 5th
// generation of tensor core operations').
#pragma once
#include "emulator/runtime/shared_memory.hpp"

namespace emulator {

constexpr u32 kPipes = 8;  // of a block

enum class Queue { ld, st, done, issued };  // of a pipe: completed works, and works whose order is settled

struct TensorWork {
  const char* what;
  u32 thread;  // that issued it; of a warp the first
  Queue queue;
  u32 owner, count;  // a warp's or a pipe's number in the machine, and which of its works this is
};

// Counts by queue; the least of all lanes where a warp acts as one.
struct Knowledge {
  Clock waited, fenced, known;
};

u32 tensor_works();  // how many counts a cluster has
u32 tensor_index(Queue queue, u32 owner);
// The actor for shared memory that a product or copy reads.
u32 pipe_actor(u32 pipe);

void tensor_order_reset();
Knowledge knowledge_of(u32 first_thread, u32 lanes);
// `thread` itself has waited for a work, or issued it.
void tensor_knows(u32 thread, Queue queue, u32 owner, u32 count);
// A clock that a commit's arrival releases: all that `thread` knows, and its works up to `count` as done.
Clock committed_clock(u32 thread, u32 pipe, u32 count);

// Fails, with what is missing, unless the access by `later` is ordered after `earlier`.
void require_order(const TensorWork& earlier, const TensorWork& later, const Knowledge& knowledge,
                   const std::string& where);
// The same for tcgen05.dealloc, which is synchronous: having waited is enough.
bool waited_for(const TensorWork& earlier, const Knowledge& knowledge);

}  // namespace emulator
