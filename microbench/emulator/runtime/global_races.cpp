// Races in global memory, between blocks whatever the order in which they happen to run here, and between the threads
// of a block or cluster. Between clusters the only order comes from atomics: __threadfence, an atomic update, another
// cluster's later update of the same word, and __threadfence there. A cluster is one actor there; within it the clocks of shared memory
// tell.
//
// At plain accesses a kernel calls the __tsan_ hooks at the end: -fsanitize=thread makes the compiler write the calls,
// and nothing of that sanitizer's own library is linked.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "emulator/runtime/fiber.hpp"
#include "emulator/runtime/global_memory.hpp"
#include "emulator/runtime/shared_memory.hpp"

namespace emulator {

namespace {

// By cluster; one that is absent was never heard of.
using Epochs = std::unordered_map<u32, u32>;

// What an atomic word hands on: between clusters, and to the threads of the cluster that wrote it last.
struct Word {
  Epochs epochs, updates;
  u32 cluster = 0;
  Clock clock;
};

// By cluster: how many fences and atomic updates it has made; whose updates told it of, and whose it knows by a fence
// behind them; what its last fence covers.
std::vector<u32> epoch, updates;
std::vector<Epochs> told, known, known_updates, fenced;
std::unordered_map<u32, Clock> thread_fences;
std::unordered_map<u64, Word> words;
std::unordered_map<u64, u64> volatile_reads;  // by thread and address: what was found there

void join(Epochs& into, const Epochs& from) {
  for (const auto& [cluster, count] : from) into[cluster] = std::max(into[cluster], count);
}

bool is_ordered(const GlobalTouch& earlier, u32 cluster, bool update) {
  if (earlier.who == cluster + 1)
    return earlier.actor == thread_actor(running->thread) ||
           ordered({earlier.actor, earlier.clock}, clock_of(running->thread));
  const Epochs& epochs = update ? known_updates[cluster] : known[cluster];
  auto heard = epochs.find(earlier.who - 1);
  return heard != epochs.end() && heard->second >= (update ? earlier.update : earlier.epoch);
}

std::string name_of(const GlobalTouch& earlier, u32 cluster) {
  if (earlier.who == cluster + 1) return actor_name(earlier.actor);
  return joined(cluster_blocks > 1 ? "cluster " : "block ", coordinates(place_in(clusters(), earlier.who - 1)));
}

struct Touching {
  u64 address, bytes;
  Access access;
  GlobalTouch mine;

  u32 cluster() const { return mine.who - 1; }

  [[noreturn]] void report(const GlobalTouch& earlier, const char* kind) const {
    static const char* const names[] = {"read", "write", "atomic update"};
    bool within = earlier.who == mine.who;
    fail((within ? "race: " : "race between blocks: "), names[static_cast<int>(access)], " (",
         global_trouble(address, bytes), ") is not ordered after the ", kind, " by ", name_of(earlier, cluster()),
         (within ? "" : "; a GPU runs blocks in any order"));
  }

  void check(const GlobalTouch& earlier, u32 mask, bool update, const char* kind) const {
    if ((earlier.mask & mask) && !is_ordered(earlier, cluster(), update)) report(earlier, kind);
  }

  void put(GlobalTouch& into, u32 mask) const {
    u32 before = into.who == mine.who && into.actor == mine.actor ? into.mask : 0;
    into = mine;
    into.mask = mask | before;
  }

  void operator()(GlobalCell& cell, u32 mask) const {
    if (access != Access::update || !cell.updated)
      check(cell.writer, mask, cell.updated, cell.updated ? "atomic update" : "write");
    if (access == Access::read) {
      // The first reader, and the last other one: where every thread reads, a writer races with one of them.
      GlobalTouch& first = cell.readers[0];
      bool same = !first.who || (first.who == mine.who && first.actor == mine.actor);
      return put(cell.readers[same ? 0 : 1], mask);
    }
    for (const GlobalTouch& reader : cell.readers) check(reader, mask, false, "read");
    cell.readers[0] = cell.readers[1] = {};
    put(cell.writer, mask);
    cell.updated = access == Access::update;
  }
};

// A hook must not throw: the compiler takes it for a function that never does.
template <class Function>
void in_a_hook(const void* address, Function function) {
  if (on_a_stack(address)) return;
  std::string said;
  try {
    return function();
  } catch (const Failure& failure) {
    said = failure.what();
  }
  abandon(said);
}

void plain(const void* address, u64 bytes, Access access) {
  in_a_hook(address, [=] { note_global(reinterpret_cast<u64>(address), bytes, access); });
}

// A volatile read is how one block looks out for another: let the others run. It is idle where it finds what this
// thread found there before.
void strong(const void* address, u64 bytes, bool reads) {
  in_a_hook(address, [=] {
    atomic_access(address, static_cast<u32>(bytes));
    if (!reads) return;
    u64 value = 0;
    std::memcpy(&value, address, std::min<u64>(bytes, sizeof value));
    auto [place, fresh] =
        volatile_reads.try_emplace(reinterpret_cast<u64>(address) ^ u64{running->thread} << 48, value);
    if (fresh || place->second != value) machine.idle_polls = 0;
    place->second = value;
    poll();
  });
}

}  // namespace

void global_races_reset(u32 clusters) {
  epoch.assign(race_reports ? clusters : 0, 1);
  told.assign(epoch.size(), {});
  known.assign(epoch.size(), {});
  fenced.assign(epoch.size(), {});
  updates.assign(epoch.size(), 0);
  known_updates.assign(epoch.size(), {});
  words.clear();
  volatile_reads.clear();
  thread_fences.clear();
  global_cells_reset();
}

void note_global(u64 address, u64 bytes, Access access) {
  u64 start = 0;
  GlobalCell* cells = race_reports ? global_cells(address, start) : nullptr;
  if (!cells) return;
  Moment moment = now(running->thread);
  u32 cluster = running->cluster;
  Touching touching{
      address, bytes, access, {cluster + 1, epoch[cluster], updates[cluster], moment.actor, moment.clock, 0}};
  for (u64 at = address - start, end = at + bytes; at < end;) {
    u64 next = std::min(end, (at / 4 + 1) * 4);
    touching(cells[at / 4], ((1u << (next - at)) - 1) << at % 4);
    at = next;
  }
}

void atomic_access(const void* address, u32 bytes) {
  if (!race_reports) return;
  u64 at = reinterpret_cast<u64>(address);
  u32 cluster = running->cluster, thread = running->thread;
  Word& word = words[at];
  if (word.cluster == cluster + 1) acquire(thread, word.clock);
  join(told[cluster], word.epochs);
  join(word.epochs, fenced[cluster]);
  join(known_updates[cluster], word.updates);
  known_updates[cluster][cluster] = ++updates[cluster];
  join(word.updates, known_updates[cluster]);
  if (auto fence = thread_fences.find(thread); fence != thread_fences.end()) {
    if (word.cluster != cluster + 1) word.clock.clear();
    word.cluster = cluster + 1;
    join(word.clock, fence->second);
  }
  note_global(at, bytes, Access::update);
}

void threadfence() {
  if (!race_reports) return;
  u32 cluster = running->cluster;
  join(known[cluster], told[cluster]);
  fenced[cluster] = known[cluster];
  fenced[cluster][cluster] = epoch[cluster]++;
  release(running->thread, thread_fences[running->thread]);
}

}  // namespace emulator

#define HOOK(NAME, BYTES, ACCESS) \
  extern "C" void NAME(void* address) { emulator::plain(address, BYTES, emulator::Access::ACCESS); }
#define STRONG_HOOK(NAME, BYTES, READS) \
  extern "C" void NAME(void* address) { emulator::strong(address, BYTES, READS); }
#define HOOKS(BYTES)                                              \
  HOOK(__tsan_read##BYTES, BYTES, read)                           \
  HOOK(__tsan_write##BYTES, BYTES, write)                         \
  HOOK(__tsan_unaligned_read##BYTES, BYTES, read)                 \
  HOOK(__tsan_unaligned_write##BYTES, BYTES, write)               \
  STRONG_HOOK(__tsan_volatile_read##BYTES, BYTES, true)           \
  STRONG_HOOK(__tsan_volatile_write##BYTES, BYTES, false)         \
  STRONG_HOOK(__tsan_unaligned_volatile_read##BYTES, BYTES, true) \
  STRONG_HOOK(__tsan_unaligned_volatile_write##BYTES, BYTES, false)
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)
extern "C" void __tsan_read_range(void* address, unsigned long bytes) {
  emulator::plain(address, bytes, emulator::Access::read);
}
extern "C" void __tsan_write_range(void* address, unsigned long bytes) {
  emulator::plain(address, bytes, emulator::Access::write);
}
extern "C" void __tsan_init() {}
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit() {}
