// Rows from global to shared memory by cp.async, whole rows side by side: neighbouring threads copy neighbouring chunks of
// 16 bytes, beyond the ends of rows too.
//
// Loader (load.cuh) gives a row's span to so few threads as the XOR spans, two of them where a row is 32 bytes more than
// a multiple of 64. Where it begins inside of a sector, such spans fetch every other sector twice.
//
// A thread's chunk stays the same from pass to pass, and the next row's address is a sum: to find each chunk's row took a
// warp that had its scheduler alone 20 to 50 cycles a copy. Where passes are whole fours of rows, places in shared memory
// are a register or two and immediates, as the XOR comes again every eight rows. With a register a copy ptxas had three
// for all, and each copy waited until an earlier one had read its own, 17 cycles: 128 keys of head dim 96 took a lone
// block 13 % more, of 112 with 36 registers more. A third of idle threads costs more than that.
//
// Such rows end inside of a line, and who has the next head asks for its rest. Blocks that have an SM each keep step, and
// whole lines from DRAM save up to 5 % of the time; several on an SM drift apart until the L2 has lost the rest, and take
// 3 to 12 % more by them (H200, row_passes.csv). Both ways in one kernel took a lone block 2 to 4 % more than either.
//
//   WHOLE_LINES       1: a miss of the L2 brings all of a line; not given where it does not
#pragma once
#include "load.cuh"

#ifdef WHOLE_LINES
constexpr bool kWholeLines = WHOLE_LINES;
#else
constexpr bool kWholeLines = false;
#endif

template <class Row>
struct ConsecutiveLoader {
  static constexpr int kChunks = Row::kBytes / 16, kRows = kThreads / kChunks, kFours = kRows / 4 * 4;
  static constexpr int kPass = 5 * kFours >= 4 * kRows ? kFours : kRows, kPeriod = 8;
  static constexpr int kPlaces = kPass % kPeriod == 0 ? 1 : 2;

  int row, column;  // of the thread's first chunk; column in elements
  unsigned places[kPlaces];

  __device__ __forceinline__ ConsecutiveLoader() : row(threadIdx.x / kChunks), column(8 * (threadIdx.x % kChunks)) {
#pragma unroll
    for (int i = 0; i < kPlaces; ++i) places[i] = place(i * kPass) - i * kPass * Row::kBytes;
  }

  // In a tile, of this thread's chunk in its row of a pass.
  __device__ __forceinline__ unsigned place(int pass) const {
    return (row + pass) * Row::kBytes + 2 * column ^ Row::bits(row + pass) << 4;
  }

  // As Loader::load.
  template <bool Whole, int Count>
  __device__ __forceinline__ void load(unsigned to, const unsigned short* from, long long stride, int rows, int columns,
                                       int lead) const {
    if (row >= kPass) return;
    const bool inside = is_within(column - lead, columns);
#pragma unroll
    for (int pass = 0; pass < Count; pass += kPass) {
      if (Count - pass < kPass && row >= Count - pass) continue;
      const bool used = inside && (Whole || row + pass < rows);
      const unsigned at = kPass % 4 ? to + place(pass) : to + places[pass / kPass % kPlaces] + pass * Row::kBytes;
      if constexpr (kWholeLines)
        ptx::cp_async16_line(at, from + pass * stride, used ? 16 : 0);
      else
        ptx::cp_async16(at, from + pass * stride, used ? 16 : 0);
    }
  }
};

template <class Row, bool Consecutive = Row::kGroup != 8>
struct LoaderOf {
  using Type = Loader<Row>;
};

template <class Row>
struct LoaderOf<Row, true> {
  using Type = ConsecutiveLoader<Row>;
};
