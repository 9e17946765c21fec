// A mask of bytes, 0 hides, or of floats, which are added: in the dtype of the inputs, or 32 bits. What lies outside of the
// tensor is not read. A float is worth log2(e) / scale_log2 among raw scores: computed here, as a field of its own would
// move those of every build.
//
// Loads wait for no condition and for none another: a row or key outside of the tensor is read as its last, and nobody
// counts its score. Behind a branch for each byte a mask took four fifths of a kernel's time (H100).
#pragma once
#include "ptx/convert.cuh"
#include "ptx/read_only.cuh"

// A key of a row, and two neighbouring ones.
template <int Bytes>
struct MaskWords;
template <>
struct MaskWords<1> {
  using One = unsigned char;
  using Two = unsigned short;
};
template <>
struct MaskWords<2> {
  using One = unsigned short;
  using Two = unsigned;
};
template <>
struct MaskWords<4> {
  using One = unsigned;
  using Two = ptx::u64;
};

constexpr int kMaskBytes = kMask ? 1 : kBias32 ? 4 : 2;
using MaskOne = MaskWords<kMaskBytes>::One;
using MaskTwo = MaskWords<kMaskBytes>::Two;
// Twos on their way at a time, in 16 registers: with twice as many, tiles that hold without a mask spill.
constexpr int kMaskAtOnce = kBias32 ? 8 : 16;

__device__ __forceinline__ void change_two(float& first, float& second, MaskTwo two, float scale) {
  if constexpr (kMask) {
    if (!(two & 0xff)) first = minus_infinity();
    if (!(two >> 8)) second = minus_infinity();
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

// Where the mask of a fragment's scores lies, of which `row` and `column` are those of s[0].
template <class Scores>
struct MaskAt {
  const MaskOne* lines[Scores::kRows];
  int column, last;
  long long step;
  bool in_twos;  // neighbours lie side by side, at whole twos, and inside of the tensor

  __device__ __forceinline__ MaskAt(const Launch& launch, const Work& work, int row, int column)
      : column(column), last(work.keys - 1), step(launch.mask_key) {
    const MaskOne* first = reinterpret_cast<const MaskOne*>(launch.mask) + work.batch * launch.mask_batch +
                           work.head * launch.mask_head + (kRanges ? work.skipped : 0) * launch.mask_key;
#pragma unroll
    for (int h = 0; h < Scores::kRows; ++h)
      lines[h] = first + min(row + h * Scores::kStep, work.queries - 1) * launch.mask_row;
    const ptx::u64 places = reinterpret_cast<ptx::u64>(first + column) | launch.mask_row * kMaskBytes;
    in_twos = step == 1 && places % (2 * kMaskBytes) == 0 && column + Scores::column(Scores::kCount - 1) <= last;
  }

  __device__ __forceinline__ MaskTwo two(int at) const {
    return ptx::read_only(reinterpret_cast<const MaskTwo*>(lines[Scores::line(at)] + column + Scores::column(at)));
  }

  __device__ __forceinline__ MaskTwo one_by_one(int at) const {
    const MaskOne* line = lines[Scores::line(at)];
    const int key = column + Scores::column(at);
    const MaskTwo first = ptx::read_only(line + min(key, last) * step);
    return first | static_cast<MaskTwo>(ptx::read_only(line + min(key + 1, last) * step)) << 8 * kMaskBytes;
  }
};

template <class Scores>
__device__ __forceinline__ void change_mask(Scores& s, const Launch& launch, const Work& work, int row, int column) {
  constexpr int kTwos = Scores::kCount / 2, kAtOnce = kMaskAtOnce < kTwos ? kMaskAtOnce : kTwos;
  const float scale = kMask ? 0.f : __fdividef(1.44269504f, launch.scale_log2);
  const MaskAt<Scores> mask(launch, work, row, column);
#pragma unroll
  for (int begin = 0; begin < kTwos; begin += kAtOnce) {
    MaskTwo twos[kAtOnce];
    // A branch around all loads of a turn: around each, they would wait for one another again.
    if (mask.in_twos) {
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        if (begin + i < kTwos) twos[i] = mask.two(2 * (begin + i));
    } else {
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        if (begin + i < kTwos) twos[i] = mask.one_by_one(2 * (begin + i));
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      if (const int at = 2 * (begin + i); begin + i < kTwos) change_two(s[at], s[at + 1], twos[i], scale);
  }
}
