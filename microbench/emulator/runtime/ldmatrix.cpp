// ldmatrix and stmatrix: 8 x 8 matrices of 16 bits. The layout is the one that cuda/ptx/ldmatrix.cuh states.
#include "emulator/runtime/shared_memory.hpp"
#include "emulator/runtime/shared_trace.hpp"
#include "emulator/runtime/warp.hpp"

namespace emulator {

namespace {

constexpr u32 kRowBytes = 16;

struct Lane {
  u32* registers;
  u32 address;
};

const char* name_of(bool store, u32 count, bool transposed) {
  static const char* const names[] = {"ldmatrix.x1", "ldmatrix.x1.trans", "ldmatrix.x2", "ldmatrix.x2.trans",
                                      "ldmatrix.x4", "ldmatrix.x4.trans", "stmatrix.x1", "stmatrix.x1.trans",
                                      "stmatrix.x2", "stmatrix.x2.trans", "stmatrix.x4", "stmatrix.x4.trans"};
  return names[store * 6 + count / 2 * 2 + transposed];
}

using Matrix = u16[8][8];

// The two elements of a lane: of row lane / 4, or of column lane / 4 where transposed.
u16& element(Matrix& matrix, u32 lane, u32 half, bool transposed) {
  u32 line = lane / 4, place = lane % 4 * 2 + half;
  return transposed ? matrix[place][line] : matrix[line][place];
}

void trace(Shared kind, Lane** lanes, u32 count) {
  u32 rows[kWarp];
  for (u32 row = 0; row < 8 * count; ++row) rows[row] = lanes[row]->address;
  trace_rows(kind, rows, 8 * count);
}

void load(Lane** lanes, u32 count, bool transposed, const char* name) {
  if (shared_tracing) trace(Shared::load, lanes, count);
  u32 warp = running->warp();
  Moment moment = warp_moment(warp);
  for (u32 m = 0; m < count; ++m) {
    Matrix matrix;
    for (u32 row = 0; row < 8; ++row) {
      u32 giver = m * 8 + row, address = lanes[giver]->address;
      std::memcpy(matrix[row], shared_at(address, kRowBytes, kRowBytes, name), kRowBytes);
      note_read(address, kRowBytes, moment, clock_of(warp * kWarp + giver), Proxy::generic, name);
    }
    for (u32 lane = 0; lane < kWarp; ++lane)
      lanes[lane]->registers[m] = element(matrix, lane, 0, transposed) | u32{element(matrix, lane, 1, transposed)}
                                                                             << 16;
  }
  // Every lane got its row, so every lane knows that the reads are over.
  warp_knows(warp, moment);
}

void store(Lane** lanes, u32 count, bool transposed, const char* name) {
  if (shared_tracing) trace(Shared::store, lanes, count);
  for (u32 m = 0; m < count; ++m) {
    Matrix matrix;
    for (u32 lane = 0; lane < kWarp; ++lane)
      for (u32 half = 0; half < 2; ++half)
        element(matrix, lane, half, transposed) = static_cast<u16>(lanes[lane]->registers[m] >> half * 16);
    for (u32 row = 0; row < 8; ++row) {
      u32 giver = m * 8 + row, thread = running->warp() * kWarp + giver, address = lanes[giver]->address;
      u8* to = shared_at(address, kRowBytes, kRowBytes, name);
      note_write(address, kRowBytes, now(thread), clock_of(thread), Proxy::generic, name);
      std::memcpy(to, matrix[row], kRowBytes);
    }
  }
}

}  // namespace

void ldmatrix(u32* registers, u32 count, u32 address, bool transposed) {
  const char* name = name_of(false, count, transposed);
  Lane mine{registers, address};
  collective(name, kFullMask, mine, [=](Lane** lanes) { load(lanes, count, transposed, name); });
}

void stmatrix(const u32* registers, u32 count, u32 address, bool transposed) {
  const char* name = name_of(true, count, transposed);
  u32 copy[4];
  std::memcpy(copy, registers, count * sizeof(u32));
  Lane mine{copy, address};
  collective(name, kFullMask, mine, [=](Lane** lanes) { store(lanes, count, transposed, name); });
}

}  // namespace emulator
