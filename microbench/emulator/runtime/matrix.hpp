// A matrix in shared memory as a descriptor states it: 'Canonical layouts' of the PTX ISA, the same for wgmma and
// tcgen05. cuda/ptx/tcgen05_descriptor.cuh writes them out.
#pragma once
#include <cstring>

#include "emulator/runtime/shared_memory.hpp"
#include "emulator/runtime/tensor_copy.hpp"

namespace emulator {

// A swizzle repeats every eight rows, from a multiple of so many bytes on; elsewhere "the base offset must be a non-zero
// value" (PTX ISA, 'Matrix descriptor' of wgmma, 'Shared memory descriptor' of tcgen05). Copies and products that
// count the pattern from the address agree all the same, so no result shows it.
inline void require_pattern_start(u32 start, u32 span, const std::string& says) {
  if (u32 row = span ? start / span % 8 : 0)
    fail(says, "its matrix starts at row ", row,
         " of the eight of a swizzle, with the base offset 0; align its tile to ", 8 * span, " bytes");
}

struct Matrix {
  u32 start, leading, stride, span, bytes;  // `bytes`: of an element
  bool mn_major;

  u32 address(u32 mn, u32 k) const {
    u32 offset, row = mn * bytes, along = k * bytes;
    if (!span)  // cores of eight rows of 16 bytes
      offset = mn_major ? row % 16 + row / 16 * stride + k % 8 * 16 + k / 8 * leading
                        : mn % 8 * 16 + mn / 8 * stride + along % 16 + along / 16 * leading;
    else if (mn_major)
      offset = row % span + row / span * leading + k % 8 * span + k / 8 * stride;
    else
      offset = mn % 8 * span + mn / 8 * stride + along;
    return span ? swizzled(start + offset, span) : start + offset;
  }

  u32 element(u32 mn, u32 k, const char* what) const {
    u32 word = 0;
    const u8* from = landing_at(address(mn, k), bytes, bytes, what);
    std::memcpy(&word, from, bytes);
    return word;
  }

  // Tell the shadow of shared memory that `rows` rows from `first` on are read.
  void note(u32 first, u32 rows, u32 depth, Moment moment, const Clock& seen, const char* what) const {
    u32 neighbours = 16 / bytes;  // one chunk whatever the layout
    for (u32 mn = first; mn < first + rows; mn += mn_major ? neighbours : 1)
      for (u32 k = 0; k < depth; k += mn_major ? 1 : neighbours) {
        u32 chunk = address(mn, k);
        cluster_at(chunk, 16, 16, what);
        note_read(chunk, 16, moment, seen, Proxy::async, what);
      }
  }
};

}  // namespace emulator
