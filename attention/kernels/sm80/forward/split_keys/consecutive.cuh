// Rows from global to shared memory by cp.async, chunk after chunk: neighbouring threads copy neighbouring chunks of 16
// bytes, beyond the ends of rows too.
//
// Loader (load.cuh) gives a row's span to so few threads as the XOR spans, two of them where a row is 32 bytes more than
// a multiple of 64. Where it begins inside of a sector, such spans fetch every other sector twice.
#pragma once
#include "load.cuh"

template <class Row>
struct ConsecutiveLoader {
  static constexpr int row = 0, column = 0;  // of every thread: where it copies from follows from its number
  static constexpr int kChunks = Row::kBytes / 16;

  // As Loader::load.
  template <bool Whole, int Count>
  __device__ __forceinline__ void load(unsigned to, const unsigned short* from, long long stride, int rows,
                                       int columns) const {
#pragma unroll
    for (int pass = 0; pass < Count * kChunks; pass += kThreads) {
      const int place = pass + threadIdx.x, row = place / kChunks, chunk = place % kChunks;
      if (Count * kChunks - pass < kThreads && row >= Count) continue;
      const bool used = (Whole || row < rows) && 8 * chunk < columns;
      ptx::cp_async16(to + row * Row::kBytes + ((chunk ^ Row::bits(row)) << 4), from + row * stride + 8 * chunk,
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
