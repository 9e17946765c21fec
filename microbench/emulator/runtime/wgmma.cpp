// wgmma: each warp of a warpgroup multiplies its 16 rows of A by B, at some moment between issue and wait. Until the
// wait its accumulators hold NaN, and its reads of shared memory are unfinished. Fragments and descriptors are those
// that cuda/ptx/wgmma.cuh states.
#include <algorithm>
#include <deque>

#include "emulator/runtime/shared_memory.hpp"
#include "emulator/runtime/tensor_copy.hpp"
#include "emulator/runtime/warp.hpp"

namespace emulator {

namespace {

constexpr u32 kDepth = 16, kRows = 16;

// A matrix in shared memory, as a descriptor states it.
struct Matrix {
  u32 start, leading, stride, span;
  bool mn_major;

  u32 address(u32 mn, u32 k) const {
    u32 offset;
    if (!span)  // 8 x 8 cores of 128 contiguous bytes
      offset = mn_major ? mn % 8 * 2 + mn / 8 * stride + k % 8 * 16 + k / 8 * leading
                        : mn % 8 * 16 + mn / 8 * stride + k % 8 * 2 + k / 8 * leading;
    else if (mn_major)
      offset = mn % (span / 2) * 2 + mn / (span / 2) * leading + k % 8 * span + k / 8 * stride;
    else
      offset = mn % 8 * span + mn / 8 * stride + k * 2;
    return span ? swizzled(start + offset, span) : start + offset;
  }
};

Matrix describe(u64 bits, bool mn_major) {
  static const u32 spans[] = {0, 128, 64, 32};
  if (bits >> 49 & 7) fail("wgmma: a descriptor with a base offset is not modelled; align its tile to 1024 bytes");
  auto field = [bits](u32 shift) { return static_cast<u32>(bits >> shift & 0x3FFF) << 4; };
  return {field(0) | window(), field(16), field(32), spans[bits >> 62], mn_major};
}

using Values = std::vector<float>;

struct Operation {
  float* key;
  Moment moment;
  std::function<void(std::vector<Values>&)> action;
};

// Accumulators that the tensor cores own: where they return to, and what they hold, by lane.
struct Accumulators {
  float* key;
  u32 count, unfinished;
  std::vector<float*> home;
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

Accumulators* find(std::deque<Accumulators>& among, const float* key) {
  for (Accumulators& each : among)
    if (each.key == key) return &each;
  return nullptr;
}

struct Lane {
  float* d;
  const u32* a;
  u64 a_descriptor, b_descriptor;
};

float element_at(const Matrix& matrix, u32 mn, u32 k, Type type) {
  u16 bits;
  std::memcpy(&bits, shared_at(matrix.address(mn, k), 2, 2, "wgmma"), sizeof bits);
  return widen(bits, type);
}

void note(const Matrix& matrix, u32 first, u32 count, Moment moment, const Clock& seen) {
  // Eight neighbours are one chunk of 16 bytes whatever the layout.
  for (u32 mn = 0; mn < count; mn += matrix.mn_major ? 8 : 1)
    for (u32 k = 0; k < kDepth; k += matrix.mn_major ? 1 : 8) {
      u32 chunk = matrix.address(first + mn, k);
      shared_at(chunk, 16, 16, "wgmma");
      note_read(chunk, 16, moment, seen, Proxy::async, "wgmma");
    }
}

void check_fence(const WarpState& state, const Accumulators* returned, Lane** lanes, u32 count, bool from_registers) {
  bool same = returned != nullptr && !from_registers;
  for (u32 lane = 0; same && lane < kWarp; ++lane)
    same = std::memcmp(lanes[lane]->d, returned->values[lane].data(), count * sizeof(float)) == 0;
  if (!state.fenced && !same) fail("wgmma: its registers were written since the last wgmma, without wgmma.fence");
}

Accumulators& own(WarpState& state, Lane** lanes, u32 count, bool from_registers) {
  float* key = lanes[0]->d;
  Accumulators* owned = find(state.owned, key);
  if (owned && !from_registers) return *owned;
  check_fence(state, find(state.returned, key), lanes, count, from_registers);
  if (owned) return *owned;
  state.owned.push_back({key, count, 0, {}, {}});
  Accumulators& made = state.owned.back();
  for (u32 lane = 0; lane < kWarp; ++lane) {
    made.home.push_back(lanes[lane]->d);
    made.values.emplace_back(lanes[lane]->d, lanes[lane]->d + count);
    std::memset(lanes[lane]->d, 0xFF, count * sizeof(float));
  }
  return made;
}

struct Product {
  Type type;
  u32 columns, first_row;
  bool from_registers, accumulate;
  Matrix a, b;
  u32 fragments[kWarp][4];

  void load_a(float (&rows)[kRows][kDepth]) const {
    for (u32 row = 0; row < kRows && !from_registers; ++row)
      for (u32 k = 0; k < kDepth; ++k) rows[row][k] = element_at(a, first_row + row, k, type);
    for (u32 lane = 0; lane < kWarp && from_registers; ++lane)
      for (u32 i = 0; i < 4; ++i) {
        float* pair = &rows[lane / 4 + i % 2 * 8][lane % 4 * 2 + i / 2 * 8];
        pair[0] = widen(static_cast<u16>(fragments[lane][i]), type);
        pair[1] = widen(static_cast<u16>(fragments[lane][i] >> 16), type);
      }
  }

  void operator()(std::vector<Values>& d) const {
    static float rows[kRows][kDepth], tile[kDepth][256], sums[kRows][256];
    load_a(rows);
    for (u32 k = 0; k < kDepth; ++k)
      for (u32 n = 0; n < columns; ++n) tile[k][n] = element_at(b, n, k, type);
    for (u32 row = 0; row < kRows; ++row) {
      std::fill_n(sums[row], columns, 0.f);
      for (u32 k = 0; k < kDepth; ++k)
        for (u32 n = 0; n < columns; ++n) sums[row][n] += rows[row][k] * tile[k][n];
    }
    for (u32 lane = 0; lane < kWarp; ++lane)
      for (u32 i = 0; i < columns / 2; ++i) {
        float sum = sums[lane / 4 + i % 4 / 2 * 8][i / 4 * 8 + lane % 4 * 2 + i % 2];
        d[lane][i] = accumulate ? d[lane][i] + sum : sum;
      }
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
  Accumulators& accumulators = own(state, lanes, count, product.from_registers);
  if (accumulators.count != count) fail("wgmma: two shapes in flight on the same accumulators");
  ++accumulators.unfinished;
  Moment moment = warp_moment(warp);
  const Clock& seen = clock_of(running->thread);
  if (!product.from_registers) note(product.a, product.first_row, kRows, moment, seen);
  note(product.b, 0, product.columns, moment, seen);
  if (product.from_registers)
    for (u32 lane = 0; lane < kWarp; ++lane) std::memcpy(product.fragments[lane], lanes[lane]->a, 4 * sizeof(u32));
  Operation operation{lanes[0]->d, moment, product};
  state.open.push_back({lanes[0]->d, moment, nullptr});
  state.waiting.push_back(std::move(operation));
  if (machine.mode == Mode::eager || (machine.mode == Mode::random && chance(2))) execute_next(state);
}

void give_back(WarpState& state, float* key) {
  auto owned =
      std::find_if(state.owned.begin(), state.owned.end(), [key](const auto& each) { return each.key == key; });
  for (u32 lane = 0; lane < kWarp; ++lane)
    std::memcpy(owned->home[lane], owned->values[lane].data(), owned->count * sizeof(float));
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

struct Nothing {
} nothing;

}  // namespace

void wgmma_reset() {
  warps.clear();
  warps.resize(machine.warp_slots());
}

void wgmma_thread_finished() {
  const WarpState& state = warps[running->warp()];
  if (!state.open.empty() || !state.committed.empty()) fail("the thread ended before wgmma.wait_group");
}

void wgmma(float* d, u32 count, Type type, u64 a, const u32* registers, u64 b, bool accumulate, bool a_mn, bool b_mn) {
  u32 warp = running->warp();
  Product product{};
  product.type = type;
  product.columns = 2 * count;
  product.first_row = warp % 4 * kRows;
  product.from_registers = registers != nullptr;
  product.accumulate = accumulate;
  if (!registers) product.a = describe(a, a_mn);
  product.b = describe(b, b_mn);
  Lane mine{d, registers, a, b};
  collective("wgmma.mma_async", kFullMask, mine, [&](Lane** lanes) { issue(lanes, count, product, running->warp()); });
}

void wgmma_fence() {
  collective("wgmma.fence", kFullMask, nothing, [](Nothing**) { warps[running->warp()].fenced = true; });
}

void wgmma_commit() {
  collective("wgmma.commit_group", kFullMask, nothing, [](Nothing**) {
    WarpState& state = warps[running->warp()];
    state.committed.push_back(std::move(state.open));
    state.open.clear();
  });
}

void wgmma_wait(u32 pending) {
  collective("wgmma.wait_group", kFullMask, nothing, [pending](Nothing**) {
    WarpState& state = warps[running->warp()];
    for (; state.committed.size() > pending; state.committed.pop_front())
      for (const Operation& operation : state.committed.front()) finish(state, operation, running->warp());
  });
}

}  // namespace emulator
