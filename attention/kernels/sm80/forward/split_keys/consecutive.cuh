// Rows from global to shared memory by cp.async, whole rows side by side: neighbouring threads copy neighbouring chunks of
// 16 bytes, beyond the ends of rows too.
//
// Loader (load.cuh) gives a row's span to so few threads as the XOR spans, two of them where a row is 32 bytes more than
// a multiple of 64. Where it begins inside of a sector, such spans fetch every other sector twice.
//
// A pass takes as many whole rows as there are threads for, and up to a fifth of them idles: so a thread's chunk stays
// the same, and the next row's address is a sum. Where all threads copied, each copy of a warp that had its scheduler
// alone took 20 to 50 cycles more, to find its row.
//
// Such rows end inside of a line, and who has the next head asks for its rest: with whole lines from DRAM head dim 96 is
// read 2 to 3 % faster, 80 up to 4 % (H100, cp_async_lines.csv).
#pragma once
#include "load.cuh"

template <class Row>
struct ConsecutiveLoader {
  static constexpr int kChunks = Row::kBytes / 16, kPass = kThreads / kChunks;

  int row, column;  // of the thread's first chunk; column in elements

  __device__ __forceinline__ ConsecutiveLoader() : row(threadIdx.x / kChunks), column(8 * (threadIdx.x % kChunks)) {}

  // As Loader::load.
  template <bool Whole, int Count>
  __device__ __forceinline__ void load(unsigned to, const unsigned short* from, long long stride, int rows, int columns,
                                       int lead) const {
    if (row >= kPass) return;
    const unsigned place = to + row * Row::kBytes + 2 * column;
    const bool inside = is_within(column - lead, columns);
#pragma unroll
    for (int pass = 0; pass < Count; pass += kPass) {
      if (Count - pass < kPass && row >= Count - pass) continue;
      const bool used = inside && (Whole || row + pass < rows);
      ptx::cp_async16_line(place + pass * Row::kBytes ^ Row::bits(row + pass) << 4, from + pass * stride,
                           used ? 16 : 0);
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
