// Rows from global to shared memory by cp.async, 16 bytes a thread, past its registers.
//
// Threads stand in rows of `kGroup` chunks, the span of the XOR, and step down and across a tile: the place in shared
// memory is one register and immediates, and a row's address serves all of its groups.
#pragma once
#include "lead.cuh"
#include "ptx/cp_async.cuh"

template <class Row>
struct Loader {
  static constexpr int kGroup = Row::kGroup;

  int row, column;  // of the thread's first chunk; column in elements
  unsigned place;

  __device__ __forceinline__ Loader() {
    row = threadIdx.x / kGroup;
    const int chunk = threadIdx.x % kGroup;
    column = 8 * chunk;
    place = row * Row::kBytes + ((chunk ^ Row::bits(row)) << 4);
  }

  // `Count` rows of a tile. `from` is its row 0, shifted by this thread's row and column. Rows from `rows` on, and
  // columns before `lead` and beyond so many `columns`, become zeros.
  template <bool Whole, int Count>
  __device__ __forceinline__ void load(unsigned to, const unsigned short* from, long long stride, int rows, int columns,
                                       int lead) const {
    constexpr int kPass = kThreads / kGroup;
#pragma unroll
    for (int pass = 0; pass < Count; pass += kPass) {
      if (Count - pass < kPass && row >= Count - pass) continue;
      const bool inside = Whole || row + pass < rows;
#pragma unroll
      for (int group = 0; group < Row::kBytes / (16 * kGroup); ++group) {
        const bool used = inside && is_within(column + group * 8 * kGroup - lead, columns);
        ptx::cp_async16(to + place + pass * Row::kBytes + group * 16 * kGroup,
                        from + pass * stride + group * 8 * kGroup, used ? 16 : 0);
      }
    }
  }
};
