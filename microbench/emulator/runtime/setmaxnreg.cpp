// setmaxnreg changes nothing here but is checked: its operand, that all warps of a warpgroup agree, and that the
// block's warpgroups never ask for more registers together than an SM has.
#include "emulator/runtime/block.hpp"
#include "emulator/runtime/warp.hpp"

namespace emulator {

namespace {
constexpr u32 kRegisters = 65536;
std::vector<std::vector<u32>> requests;  // by warp, in order
}  // namespace

void setmaxnreg_reset() { renew(requests, machine.warp_slots()); }

void setmaxnreg(u32 count, bool) {
  if (count < 24 || count > 256 || count % 8) fail("setmaxnreg ", count, ": a multiple of 8 from 24 to 256 is needed");
  meet("setmaxnreg", kFullMask, [count] {
    u32 warp = running->warp(), first = warp / 4 * 4;
    requests[warp].push_back(count);
    std::size_t turn = requests[warp].size() - 1;
    for (u32 other = first; other < first + 4; ++other)
      if (requests[other].size() > turn && requests[other][turn] != count)
        fail("setmaxnreg: warps of one warpgroup ask for ", count, " and ", requests[other][turn], " registers");
    u32 sum = 0, mine = running->resident() * block.warp_slots();
    for (u32 leader = mine; leader < mine + block.warps(); leader += 4)
      if (!requests[leader].empty()) sum += requests[leader].back() * kWarpgroup;
    if (sum > kRegisters) fail("setmaxnreg: the warpgroups ask for ", sum, " of 65536 registers");
  });
}

}  // namespace emulator
