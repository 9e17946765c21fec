#include "emulator/runtime/shared_trace.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "emulator/runtime/shared_memory.hpp"

namespace emulator {

bool shared_tracing = false;

namespace {

constexpr u32 kBanks = 32, kWord = 4, kPhaseBytes = 128, kAbsent = ~0u, kMatrixRow = 16;

struct Site {
  u32 kind, bytes, warp;
  const void* place;
  bool operator<(const Site& other) const {
    return std::tie(place, warp, kind, bytes) < std::tie(other.place, other.warp, other.kind, other.bytes);
  }
};

// Instructions that not every lane of the warp has reached: `first` is the number of pending[0].
struct Pending {
  std::vector<std::vector<u32>> pending;  // addresses by lane
  u32 first = 0, times[kWarp] = {};
};

std::map<Site, Pending> sites;
std::vector<SharedAccess> rows;

u32 wavefronts_of(const u32* addresses, u32 count, u32 bytes) {
  std::set<u32> words[kBanks];
  for (u32 i = 0; i < count; ++i) {
    if (addresses[i] == kAbsent) continue;
    for (u32 word = addresses[i] / kWord; word <= (addresses[i] + bytes - 1) / kWord; ++word)
      words[word % kBanks].insert(word);
  }
  std::size_t most = 0;
  for (const auto& each : words) most = std::max(most, each.size());
  return static_cast<u32>(most);
}

void add(u32 kind, u32 bytes, const std::vector<u32>& addresses) {
  SharedAccess row{kind, bytes, 0, kAbsent, 0, 0};
  u32 lanes = std::min<u32>(static_cast<u32>(addresses.size()), kPhaseBytes / std::max(bytes, kWord));
  for (std::size_t at = 0; at < addresses.size(); at += lanes) {
    u32 count = static_cast<u32>(std::min<std::size_t>(lanes, addresses.size() - at));
    u32 fronts = wavefronts_of(&addresses[at], count, bytes);
    row.phases += fronts > 0;
    row.wavefronts += fronts;
  }
  for (u32 address : addresses) {
    if (address == kAbsent) continue;
    ++row.lanes;
    row.lowest = std::min(row.lowest, in_block(address, 0) - kSharedBase);
  }
  rows.push_back(row);
}

}  // namespace

void trace_lane(Shared kind, u32 address, u32 bytes, const void* site) {
  Pending& at = sites[{static_cast<u32>(kind), bytes, running->warp(), site}];
  u32 number = at.times[running->lane()]++ - at.first;
  while (at.pending.size() <= number) at.pending.emplace_back(kWarp, kAbsent);
  at.pending[number][running->lane()] = address;
  auto full = [](const std::vector<u32>& lanes) { return std::count(lanes.begin(), lanes.end(), kAbsent) == 0; };
  while (!at.pending.empty() && full(at.pending.front())) {
    add(static_cast<u32>(kind), bytes, at.pending.front());
    at.pending.erase(at.pending.begin());
    ++at.first;
  }
}

void trace_rows(Shared kind, const u32* addresses, u32 count) {
  add(static_cast<u32>(kind), kMatrixRow, std::vector<u32>(addresses, addresses + count));
}

void shared_trace_flush() {
  for (auto& [site, at] : sites)
    for (const auto& lanes : at.pending) add(site.kind, site.bytes, lanes);
  sites.clear();
}

}  // namespace emulator

// From now on every access is in the trace, which begins anew; or none is.
extern "C" void smscope_trace(int on) {
  emulator::sites.clear();
  emulator::rows.clear();
  emulator::shared_tracing = on != 0;
}

extern "C" unsigned long long smscope_traced(const emulator::SharedAccess** first) {
  *first = emulator::rows.data();
  return emulator::rows.size();
}
