// A warp collective: the lanes named by `mask` meet, and the last one computes for all of them.
#pragma once
#include <cstring>

#include "emulator/runtime/block.hpp"

namespace emulator {

struct Rendezvous {
  u32 mask = 0, arrived = 0;
  const char* name = nullptr;
  void* lanes[kWarp] = {};
  Waiters waiters;
};

// The meeting that this warp holds for `mask`, or a new one; the caller's payload is in its place.
// Fails where lanes of one warp meet in different collectives.
Rendezvous& join(const char* name, u32 mask, void* payload);
constexpr u32 kFullMask = ~0u;

// `run` gets the payloads by lane; lanes outside the mask are null. It runs on the fiber of the last lane.
template <class Payload, class Function>
void collective(const char* name, u32 mask, Payload& mine, Function run) {
  Rendezvous& meeting = join(name, mask, &mine);
  if (meeting.arrived != meeting.mask) return wait_in(meeting.waiters, meeting.name);
  run(reinterpret_cast<Payload**>(meeting.lanes));
  meeting.arrived = 0;
  wake(meeting.waiters);
}

// The same where lanes hand nothing over.
template <class Function>
void meet(const char* name, u32 mask, Function run) {
  bool nothing = false;
  collective(name, mask, nothing, [run](bool**) { run(); });
}

}  // namespace emulator
