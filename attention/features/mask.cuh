// A mask of bytes, 0 hides, or of floats, which are added: in the dtype of the inputs, or 32 bits. What lies outside of the
// tensor is not read. A float is worth log2(e) / scale_log2 among raw scores: computed here, as a field of its own would
// move those of every build.
//
// Loads wait for no condition and for none another: a row or key outside of the tensor is read as its last, and nobody
// counts its score. Behind a branch for each byte a mask took four fifths of a kernel's time (H100).
#pragma once
#include "fragment.cuh"
#include "ptx/convert.cuh"
#include "ptx/read_only.cuh"

// Neighbouring keys of a row: two, and the eight that a lane of a quad loads.
template <int Bytes>
struct MaskWords;
template <>
struct MaskWords<1> {
  using One = unsigned char;
  using Two = unsigned short;
  using Eight = ptx::u64;
};
template <>
struct MaskWords<2> {
  using One = unsigned short;
  using Two = unsigned;
  using Eight = ptx::vec4;
};
template <>
struct MaskWords<4> {
  using One = unsigned;
  using Two = ptx::u64;
  using Eight = ptx::vec4;  // half of them: floats of 32 bits are loaded by twos
};

constexpr int kMaskBytes = kMask ? 1 : kBias32 ? 4 : 2;
using MaskOne = MaskWords<kMaskBytes>::One;
using MaskTwo = MaskWords<kMaskBytes>::Two;
using MaskEight = MaskWords<kMaskBytes>::Eight;

__device__ __forceinline__ void hide_where_zero(float& score, unsigned byte) {
  if (!byte) score = minus_infinity();
}

__device__ __forceinline__ void change_two(float& first, float& second, MaskTwo two, float scale) {
  if constexpr (kMask) {
    hide_where_zero(first, two & 0xff);
    hide_where_zero(second, two >> 8);
  } else {
    float2 bias;
    if constexpr (kBias32)
      bias = {__uint_as_float(static_cast<unsigned>(two)), __uint_as_float(static_cast<ptx::u64>(two) >> 32)};
    else
      bias = kBf16 ? ptx::unpack_bf16(two) : ptx::unpack_f16(two);
    first += bias.x * scale;
    second += bias.y * scale;
  }
}

// 32 keys of a quad's two rows. A lane has loaded keys 8t to 8t + 7, twos 4t to 4t + 3, and holds twos t, 4 + t, 8 + t
// and 12 + t. Eight rows are eight lines of L1 to a request, whether for two keys a lane or for eight, and L1 takes one a
// cycle: by twos the requests of a mask took longer than products (H100).
template <class Scores>
__device__ __forceinline__ void change_quad(Scores& s, int at, const ptx::u64 (&bytes)[2], float) {
  const unsigned low[2] = {static_cast<unsigned>(bytes[0]), static_cast<unsigned>(bytes[1])};
  const unsigned high[2] = {static_cast<unsigned>(bytes[0] >> 32), static_cast<unsigned>(bytes[1] >> 32)};
  unsigned both[4] = {low[0] & 0xffff | low[1] << 16, low[0] >> 16 | low[1] & 0xffff0000,
                      high[0] & 0xffff | high[1] << 16, high[0] >> 16 | high[1] & 0xffff0000};
  transpose_quad(both, threadIdx.x % 4);
#pragma unroll
  for (int i = 0; i < 16; ++i) hide_where_zero(s[at + i], both[i / 4] & 0xffu << 8 * (i % 4));
}

template <class Scores>
__device__ __forceinline__ void change_quad(Scores& s, int at, const ptx::vec4 (&halves)[2], float scale) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    unsigned twos[4] = {halves[h].x, halves[h].y, halves[h].z, halves[h].w};
    transpose_quad(twos, threadIdx.x % 4);
#pragma unroll
    for (int i = 0; i < 4; ++i) change_two(s[at + 4 * i + 2 * h], s[at + 4 * i + 2 * h + 1], twos[i], scale);
  }
}

// Where the mask of a fragment's scores lies, of which `row` and `column` are those of s[0].
template <class Scores>
struct MaskAt {
  static constexpr bool kByQuads = Scores::kQuads && !kBias32;
  static constexpr int kTogether = kByQuads ? 8 : 2;  // keys of a load

  const MaskOne* lines[Scores::kRows];
  int column, last;
  long long step;
  bool together;

  __device__ __forceinline__ MaskAt(const Launch& launch, const Work& work, int row, int column)
      : column(column), last(work.keys - 1), step(launch.mask_key) {
    const MaskOne* first = reinterpret_cast<const MaskOne*>(launch.mask) + work.batch * launch.mask_batch +
                           work.head * launch.mask_head + (kRanges ? work.skipped : 0) * launch.mask_key;
#pragma unroll
    for (int h = 0; h < Scores::kRows; ++h)
      lines[h] = first + min(row + h * Scores::kStep, work.queries - 1) * launch.mask_row;
    // Of a quad, whose lanes go one way, the first key and the last.
    const int begin = column - in_quad() / 4, end = begin + Scores::column(Scores::kCount - 1) + (kByQuads ? 6 : 0);
    const ptx::u64 places = reinterpret_cast<ptx::u64>(first + begin) | launch.mask_row * kMaskBytes;
    together = launch.mask_key == 1 && places % (kTogether * kMaskBytes) == 0 && end < work.keys;
  }

  // The first of the keys that this lane loads for its quad, of each 32.
  __device__ __forceinline__ static int in_quad() { return kByQuads ? threadIdx.x % 4 * 8 : 0; }

  __device__ __forceinline__ MaskTwo one_by_one(int at) const {
    const MaskOne* line = lines[Scores::line(at)];
    const int key = column + Scores::column(at);
    const MaskTwo first = ptx::read_only(line + min(key, last) * step);
    return first | static_cast<MaskTwo>(ptx::read_only(line + min(key + 1, last) * step)) << 8 * kMaskBytes;
  }

  __device__ __forceinline__ MaskTwo two(int at) const {
    return ptx::read_only(reinterpret_cast<const MaskTwo*>(lines[Scores::line(at)] + column + Scores::column(at)));
  }

  __device__ __forceinline__ MaskEight eight(int line, int at) const {
    const MaskOne* mine = lines[line] + (column + in_quad() - in_quad() / 4);
    return ptx::read_only(reinterpret_cast<const MaskEight*>(mine + Scores::column(at)));
  }
};

// What is on its way before scores are there, of a mask that is read by eights: in 16 registers, of keys at the end too.
template <class Scores>
struct FetchedMask {
  using At = MaskAt<Scores>;
  static constexpr int kQuad = 16;  // scores of a lane among 32 keys of a quad
  static constexpr int kGroups = At::kByQuads ? Scores::kCount / kQuad : 0, kRest = Scores::kCount - kQuad * kGroups;
  static constexpr int kMost = kMask ? 4 : 2, kAhead = kGroups < kMost ? kGroups : kMost;

  bool together;
  MaskEight eights[kAhead + 1][2];
  MaskTwo twos[kRest / 2 + 1];

  __device__ __forceinline__ FetchedMask(const Launch& launch, const Work& work, int row, int column) {
    const At at(launch, work, row, column);
    together = at.together;
    if (!together || !At::kByQuads) return;
#pragma unroll
    for (int i = 0; i < kAhead; ++i) load(at, i);
#pragma unroll
    for (int i = 0; i < kRest / 2; ++i) twos[i] = at.two(kQuad * kGroups + 2 * i);
  }

  __device__ __forceinline__ void load(const At& at, int group) {
#pragma unroll
    for (int h = 0; h < 2; ++h) eights[group % kMost][h] = at.eight(h, kQuad * group);
  }
};

template <class Scores>
__device__ __forceinline__ void change_mask(Scores& s, const Launch& launch, const Work& work, int row, int column,
                                            FetchedMask<Scores> fetched) {
  using Fetched = FetchedMask<Scores>;
  const float scale = kMask ? 0.f : __fdividef(1.44269504f, launch.scale_log2);
  const MaskAt<Scores> mask(launch, work, row, column);
  if (Fetched::kGroups && fetched.together) {
#pragma unroll
    for (int i = 0; i < Fetched::kGroups; ++i) {
      change_quad(s, Fetched::kQuad * i, fetched.eights[i % Fetched::kMost], scale);
      if (i + Fetched::kMost < Fetched::kGroups) fetched.load(mask, i + Fetched::kMost);
    }
#pragma unroll
    for (int i = 0; i < Fetched::kRest / 2; ++i) {
      const int at = Fetched::kQuad * Fetched::kGroups + 2 * i;
      change_two(s[at], s[at + 1], fetched.twos[i], scale);
    }
    return;
  }
  constexpr int kAtOnce = 16;  // scores whose masks are on their way: with twice as many tiles of 128 keys spill
#pragma unroll
  for (int begin = 0; begin < Scores::kCount; begin += kAtOnce) {
    MaskTwo twos[kAtOnce / 2];
    if (mask.together) {
#pragma unroll
      for (int i = 0; i < kAtOnce / 2; ++i)
        if (const int at = begin + 2 * i; at < Scores::kCount) twos[i] = mask.two(at);
    } else {
#pragma unroll
      for (int i = 0; i < kAtOnce / 2; ++i)
        if (const int at = begin + 2 * i; at < Scores::kCount) twos[i] = mask.one_by_one(at);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce / 2; ++i)
      if (const int at = begin + 2 * i; at < Scores::kCount) change_two(s[at], s[at + 1], twos[i], scale);
  }
}
