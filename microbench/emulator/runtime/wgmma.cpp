// wgmma: each warp of a warpgroup multiplies its 16 rows of A by B, at some moment between issue and wait. Until the
// wait its accumulators hold NaN (integers: an absurd one), and its reads of shared memory are unfinished. Fragments
// and descriptors are those that cuda/ptx/wgmma.cuh states.
#include <algorithm>
#include <deque>

#include "emulator/runtime/matrix.hpp"
#include "emulator/runtime/number.hpp"
#include "emulator/runtime/warp.hpp"

namespace emulator {

namespace {

// An instruction multiplies 32 bytes of k.
constexpr u32 kDepthBytes = 32, kRows = 16;

Matrix describe(u64 bits, Type type, bool mn_major) {
  static const u32 spans[] = {0, 128, 64, 32};
  if (bits >> 49 & 7) fail("wgmma: a descriptor with a base offset is not modelled; align its tile to 1024 bytes");
  auto field = [bits](u32 shift) { return static_cast<u32>(bits >> shift & 0x3FFF) << 4; };
  require_pattern_start(field(0), spans[bits >> 62], "wgmma: descriptor " + hex(bits) + ": ");
  return {field(0) | window(), field(16), field(32), spans[bits >> 62], bytes_of(type), mn_major};
}

using Values = std::vector<u32>;  // words of f32 or s32

struct Operation {
  u32* key;
  Moment moment;
  std::function<void(std::vector<Values>&)> action;
};

// Accumulators that the tensor cores own: where they return to, and what they hold, by lane.
struct Accumulators {
  u32* key;
  u32 count, unfinished;
  std::vector<u32*> home;
  std::vector<Values> values;
};

struct WarpState {
  bool fenced = false;
  std::deque<Accumulators> owned, returned;  // `returned`: as the last wait left them
  std::deque<Operation> waiting;             // not executed yet
  std::vector<Operation> open;               // since the last commit
  std::deque<std::vector<Operation>> committed;
};
std::vector<WarpState> warps;

Accumulators* find(std::deque<Accumulators>& among, const u32* key) {
  for (Accumulators& each : among)
    if (each.key == key) return &each;
  return nullptr;
}

struct Lane {
  u32* d;
  const u32* a;
  u64 a_descriptor, b_descriptor;
};

float element_at(const Matrix& matrix, u32 mn, u32 k, Type type) { return widen(matrix.element(mn, k, "wgmma"), type); }

void note(const Matrix& matrix, u32 first, u32 count, Moment moment, const Clock& seen) {
  matrix.note(first, count, kDepthBytes / matrix.bytes, moment, seen, "wgmma");
}

void check_fence(const WarpState& state, const Accumulators* returned, Lane** lanes, u32 count, bool from_registers) {
  bool same = returned != nullptr && !from_registers;
  for (u32 lane = 0; same && lane < kWarp; ++lane)
    same = std::memcmp(lanes[lane]->d, returned->values[lane].data(), count * sizeof(u32)) == 0;
  if (!state.fenced && !same) fail("wgmma: its registers were written since the last wgmma, without wgmma.fence");
}

Accumulators& own(WarpState& state, Lane** lanes, u32 count, bool from_registers, Sums sums) {
  u32* key = lanes[0]->d;
  Accumulators* owned = find(state.owned, key);
  if (owned && !from_registers) return *owned;
  check_fence(state, find(state.returned, key), lanes, count, from_registers);
  if (owned) return *owned;
  state.owned.push_back({key, count, 0, {}, {}});
  Accumulators& made = state.owned.back();
  for (u32 lane = 0; lane < kWarp; ++lane) {
    made.home.push_back(lanes[lane]->d);
    made.values.emplace_back(lanes[lane]->d, lanes[lane]->d + count);
    // NaN, or an integer that is nobody's.
    std::memset(lanes[lane]->d, sums == Sums::f32 ? 0xFF : 0x81, count * sizeof(u32));
  }
  return made;
}

struct Product {
  Wgmma shape;
  u32 first_row;
  bool from_registers, accumulate;
  Matrix a, b;
  u32 fragments[kWarp][4];

  u32 depth() const { return kDepthBytes / bytes_of(shape.a_type); }

  void load_a(float (&rows)[kRows][kDepthBytes]) const {
    if (!from_registers) {
      for (u32 row = 0; row < kRows; ++row)
        for (u32 k = 0; k < depth(); ++k) rows[row][k] = element_at(a, first_row + row, k, shape.a_type);
      return;
    }
    // As a of mma.sync: a word holds P neighbours in k.
    const u32 p = depth() / 8;
    for (u32 lane = 0; lane < kWarp; ++lane)
      for (u32 word = 0; word < 4; ++word)
        for (u32 e = 0; e < p; ++e)
          rows[lane / 4 + word % 2 * 8][word / 2 * 4 * p + lane % 4 * p + e] =
              widen(fragments[lane][word] >> e * (32 / p), shape.a_type);
  }

  u32 added(u32 old, float sum) const {
    if (shape.sums == Sums::f32) return bits_of(accumulate ? f32_of(old) + sum : sum);
    return add_s32(accumulate ? old : 0, sum, shape.sums);
  }

  void operator()(std::vector<Values>& d) const {
    static float rows[kRows][kDepthBytes], tile[kDepthBytes][256], sums[kRows][256];
    const u32 columns = shape.columns;
    load_a(rows);
    for (u32 k = 0; k < depth(); ++k)
      for (u32 n = 0; n < columns; ++n) tile[k][n] = element_at(b, n, k, shape.b_type);
    for (u32 row = 0; row < kRows; ++row) {
      std::fill_n(sums[row], columns, 0.f);
      for (u32 k = 0; k < depth(); ++k)
        for (u32 n = 0; n < columns; ++n) sums[row][n] += rows[row][k] * tile[k][n];
    }
    for (u32 lane = 0; lane < kWarp; ++lane)
      for (u32 i = 0; i < columns / 2; ++i)
        d[lane][i] = added(d[lane][i], sums[lane / 4 + i % 4 / 2 * 8][i / 4 * 8 + lane % 4 * 2 + i % 2]);
  }
};

void execute_next(WarpState& state) {
  Operation next = std::move(state.waiting.front());
  state.waiting.pop_front();
  Accumulators& accumulators = *find(state.owned, next.key);
  next.action(accumulators.values);
}

void issue(Lane** lanes, u32 count, Product product, u32 warp) {
  for (u32 lane = 1; lane < kWarp; ++lane)
    if (lanes[lane]->a_descriptor != lanes[0]->a_descriptor || lanes[lane]->b_descriptor != lanes[0]->b_descriptor)
      fail("wgmma: the lanes of a warp give different descriptors");
  WarpState& state = warps[warp];
  Accumulators& accumulators = own(state, lanes, count, product.from_registers, product.shape.sums);
  if (accumulators.count != count) fail("wgmma: two shapes in flight on the same accumulators");
  ++accumulators.unfinished;
  Moment moment = warp_moment(warp);
  const Clock& seen = clock_of(running->thread);
  if (!product.from_registers) note(product.a, product.first_row, kRows, moment, seen);
  note(product.b, 0, product.shape.columns, moment, seen);
  if (product.from_registers)
    for (u32 lane = 0; lane < kWarp; ++lane) std::memcpy(product.fragments[lane], lanes[lane]->a, 4 * sizeof(u32));
  Operation operation{lanes[0]->d, moment, product};
  state.open.push_back({lanes[0]->d, moment, nullptr});
  state.waiting.push_back(std::move(operation));
  if (machine.mode == Mode::eager || (machine.mode == Mode::random && chance(2))) execute_next(state);
}

void give_back(WarpState& state, u32* key) {
  auto owned =
      std::find_if(state.owned.begin(), state.owned.end(), [key](const auto& each) { return each.key == key; });
  for (u32 lane = 0; lane < kWarp; ++lane)
    std::memcpy(owned->home[lane], owned->values[lane].data(), owned->count * sizeof(u32));
  for (auto old = state.returned.begin(); old != state.returned.end();)
    old = old->key == key ? state.returned.erase(old) : old + 1;
  state.returned.push_back(std::move(*owned));
  state.owned.erase(owned);
  state.fenced = false;
}

void finish(WarpState& state, const Operation& operation, u32 warp) {
  // In order: every operation up to this one has been executed.
  while (!state.waiting.empty() && state.waiting.front().moment.clock <= operation.moment.clock) execute_next(state);
  warp_knows(warp, operation.moment);
  if (--find(state.owned, operation.key)->unfinished == 0) give_back(state, operation.key);
}

}  // namespace

void wgmma_reset() { renew(warps, machine.warp_slots()); }

void wgmma_thread_finished() {
  const WarpState& state = warps[running->warp()];
  if (!state.open.empty() || !state.committed.empty()) fail("the thread ended before wgmma.wait_group");
}

void wgmma(const Wgmma& shape, void* d, u64 a, const u32* registers, u64 b, bool accumulate) {
  u32 warp = running->warp();
  Product product{shape, warp % 4 * kRows, registers != nullptr, accumulate};
  if (!registers) product.a = describe(a, shape.a_type, shape.a_mn);
  product.b = describe(b, shape.b_type, shape.b_mn);
  Lane mine{static_cast<u32*>(d), registers, a, b};
  collective("wgmma.mma_async", kFullMask, mine,
             [&](Lane** lanes) { issue(lanes, shape.columns / 2, product, running->warp()); });
}

void wgmma_fence() {
  meet("wgmma.fence", kFullMask, [] { warps[running->warp()].fenced = true; });
}

void wgmma_commit() {
  meet("wgmma.commit_group", kFullMask, [] {
    WarpState& state = warps[running->warp()];
    state.committed.push_back(std::move(state.open));
    state.open.clear();
  });
}

void wgmma_wait(u32 pending) {
  meet("wgmma.wait_group", kFullMask, [pending] {
    WarpState& state = warps[running->warp()];
    for (; state.committed.size() > pending; state.committed.pop_front())
      for (const Operation& operation : state.committed.front()) finish(state, operation, running->warp());
  });
}

}  // namespace emulator
