#include "emulator/runtime/warp.hpp"

namespace emulator {

namespace {
// By warp; a warp that has diverged may hold several meetings, of disjoint masks.
std::vector<std::vector<std::unique_ptr<Rendezvous>>> meetings;
}  // namespace

void warps_reset() { renew(meetings, machine.warp_slots()); }

Rendezvous& join(const char* name, u32 mask, void* payload) {
  u32 lanes = block.lanes(running->warp()), mine = 1u << running->lane();
  if (lanes < kWarp) mask &= (1u << lanes) - 1;
  if (!(mask & mine)) fail(name, ": the mask ", hex(mask), " does not name the calling lane");
  Rendezvous* found = nullptr;
  for (auto& meeting : meetings[running->warp()]) {
    // Each waits for the other. Meetings of other masks may go on side by side.
    if (meeting->mask != mask && (meeting->mask & mine) && (meeting->arrived & mask))
      fail("mismatched collective: ", name, " with mask ", hex(mask), " where others are in ", meeting->name,
           " with mask ", hex(meeting->mask));
    if (meeting->mask == mask) found = meeting.get();
  }
  if (!found) {
    meetings[running->warp()].push_back(std::make_unique<Rendezvous>());
    found = meetings[running->warp()].back().get();
    found->mask = mask;
  }
  if (!found->arrived)
    found->name = name;
  else if (std::strcmp(found->name, name) != 0)
    fail("mismatched collective: this lane is in ", name, ", others of its warp in ", found->name);
  found->arrived |= mine;
  found->lanes[running->lane()] = payload;
  return *found;
}

u32 shuffle(Shuffle kind, u32 mask, u32 value, u32 operand, u32 width) {
  struct Lane {
    u32 value, operand, width, result;
  } mine{value, operand, width, 0};
  static const char* const names[] = {"shfl.idx", "shfl.up", "shfl.down", "shfl.bfly"};
  collective(names[static_cast<int>(kind)], mask, mine, [kind](Lane** lanes) {
    for (u32 i = 0; i < kWarp; ++i) {
      if (!lanes[i]) continue;
      u32 w = lanes[i]->width, first = i / w * w, source = i;
      if (kind == Shuffle::index) source = first + lanes[i]->operand % w;
      if (kind == Shuffle::up && i - first >= lanes[i]->operand) source = i - lanes[i]->operand;
      if (kind == Shuffle::down && i - first + lanes[i]->operand < w) source = i + lanes[i]->operand;
      if (kind == Shuffle::exclusive_or && (i ^ lanes[i]->operand) < first + w) source = i ^ lanes[i]->operand;
      if (!lanes[source]) fail("shuffle from lane ", source, ", which does not take part");
      lanes[i]->result = lanes[source]->value;
    }
  });
  return mine.result;
}

u32 ballot(u32 mask, bool predicate) {
  struct Lane {
    bool predicate;
    u32 result;
  } mine{predicate, 0};
  collective("vote.ballot", mask, mine, [](Lane** lanes) {
    u32 votes = 0;
    for (u32 i = 0; i < kWarp; ++i)
      if (lanes[i] && lanes[i]->predicate) votes |= 1u << i;
    for (u32 i = 0; i < kWarp; ++i)
      if (lanes[i]) lanes[i]->result = votes;
  });
  return mine.result;
}

namespace {

u32 reduced(Reduction how, u32 a, u32 b) {
  int x = static_cast<int>(a), y = static_cast<int>(b);
  if (how == Reduction::add) return a + b;
  if (how == Reduction::min) return a < b ? a : b;
  if (how == Reduction::max) return a < b ? b : a;
  if (how == Reduction::min_signed) return x < y ? a : b;
  if (how == Reduction::max_signed) return x < y ? b : a;
  if (how == Reduction::bit_and) return a & b;
  return how == Reduction::bit_or ? a | b : a ^ b;
}

}  // namespace

u32 reduce(Reduction how, u32 mask, u32 value) {
  static const char* const names[] = {"redux.add",     "redux.min.u32", "redux.max.u32", "redux.min.s32",
                                      "redux.max.s32", "redux.and",     "redux.or",      "redux.xor"};
  collective(names[static_cast<int>(how)], mask, value, [how](u32** lanes) {
    u32 result = 0;
    bool first = true;
    for (u32 i = 0; i < kWarp; ++i) {
      if (!lanes[i]) continue;
      result = first ? *lanes[i] : reduced(how, result, *lanes[i]);
      first = false;
    }
    for (u32 i = 0; i < kWarp; ++i)
      if (lanes[i]) *lanes[i] = result;
  });
  return value;
}

bool elect() {
  bool leader = false;
  collective("elect.sync", kFullMask, leader, [](bool** lanes) { *lanes[0] = true; });
  return leader;
}

}  // namespace emulator
