// A mask of bytes, 0 hides, or of floats, which are added: in the dtype of the inputs, or 32 bits. What lies outside of the
// tensor is not read. A float is worth log2(e) / scale_log2 among raw scores: computed here, as a field of its own would
// move those of every build.
//
// A kernel that keeps room for rows of a mask (AHEAD_ROW) has each warp bring its own to shared memory, a tile of keys
// ahead. They are on their way while the scores of a tile become p, take no registers, and no warp waits for another. Where
// no TMA brings them, MaskAhead does.
//
// Other kernels read a mask beside the scores. Loads wait for no condition and for none another: a row or key outside of
// the tensor is read as its last, and nobody counts its score. Behind a branch for each byte a mask took four fifths of a
// kernel's time (H100).
#pragma once
#include "ptx/convert.cuh"
#include "ptx/cp_async.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/memory.cuh"
#include "ptx/read_only.cuh"
#include "ptx/shared_half.cuh"

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
constexpr int kMaskAtOnce = kBias32 ? 8 : 16, kFewAtOnce = 2;

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

// What two scores begin as, where products are added to their mask. Of bytes, 0 or 1, an IMAD makes a score: of 1 one below
// 2e-37, as good as 0; of 0 the first -inf, the second -inf or kUnseen, by what the first byte is. Factors of 3, since
// ptxas makes shifts of powers of two, which the ALU takes.
constexpr unsigned kUnseen = 0xff7d0000u;

__device__ __forceinline__ void seed_two(float& first, float& second, MaskTwo two, float scale) {
  if constexpr (kMask) {
    first = __uint_as_float(static_cast<unsigned>(two) * 0x03000000u + 0xff800000u);
    second = __uint_as_float(static_cast<unsigned>(two) * 0x00030000u + kUnseen);
  } else {
    first = second = -0.f;
    change_two(first, second, two, scale);
  }
}

// The first key of row 0, of this head.
__device__ __forceinline__ const MaskOne* mask_of(const Launch& launch, const Work& work) {
  return reinterpret_cast<const MaskOne*>(launch.mask) + work.batch * launch.mask_batch + work.head * launch.mask_head +
         (kRanges ? work.skipped : 0) * launch.mask_key;
}

// Four bytes of a row, key by key, none of them beyond the last.
__device__ __forceinline__ unsigned word_of(const MaskOne* line, int key, int last, long long step) {
  const MaskOne* from = line + min(key, last) * step;
  unsigned word = ptx::read_only(from);
#pragma unroll
  for (int i = 1; i < 4 / kMaskBytes; ++i) {
    if (key + i <= last) from += step;
    word |= static_cast<unsigned>(ptx::read_only(from)) << 8 * kMaskBytes * i;
  }
  return word;
}

// Rows of a mask on their way to a warp's part of shared memory, from its first row on: of a tile of keys at a time.
//
// Where rows begin at whole 16 bytes, and keys lie side by side, lanes bring 16 bytes each, eight or four a row. Where
// they begin and end at whole 4 bytes, 4 each along a row; others go through registers, key by key.
template <int Rows, int Keys>
struct MaskAhead {
  static constexpr int kBytes = Keys * kMaskBytes, kWords = kBytes / 4, kChunks = kBytes / 16;
  static constexpr int kSide = kChunks > 4 ? 8 : 4, kDown = 32 / kSide;
  ptx::u64 line;  // of this lane's first row, at its first chunk; of the first row, where they are no chunks
  unsigned to;
  int below;  // rows, down to the last
  int unit;

  __device__ __forceinline__ MaskAhead() {}

  __device__ __forceinline__ MaskAhead(const Launch& launch, const Work& work, int row, unsigned rows) {
    const int lane = threadIdx.x % 32;
    const ptx::u64 first = reinterpret_cast<ptx::u64>(mask_of(launch, work)), step = launch.mask_row * kMaskBytes;
    const ptx::u64 places = first | step;
    unit = launch.mask_key != 1 ? 0 : places % 16 == 0 ? 16 : (places | work.keys * kMaskBytes) % 4 == 0 ? 4 : 0;
    const bool chunks = unit == 16;
    const int down = chunks ? lane / kSide : 0, along = chunks ? lane % kSide * 16 : 0;
    below = work.queries - 1 - row - down;
    to = rows + down * kAheadRow + along;
    line = first + (chunks ? row + down : min(row, work.queries - 1)) * step + along;
  }

  // Keys from `key` on; not `Whole`, it is the first tile, and some may lie beyond the last. Those are zeros or others'
  // values, and rows beyond the last are any: nobody counts them.
  template <bool Whole>
  __device__ __forceinline__ void fetch(const Launch& launch, const Work& work, int key) const {
    __syncwarp();  // all have read the tile before
    if (unit == 16)
      bring_chunks<Whole>(launch.mask_row * kMaskBytes, work.keys - key, line + key * kMaskBytes);
    else if (unit == 4)
      bring_words(launch, work.keys - key, line_at(key));
    else
      bring_keys(launch, work.keys - key, line_at(key * launch.mask_key));
    ptx::cp_async_commit();
  }

  // What was asked for last is there, of all lanes.
  __device__ __forceinline__ void wait() const {
    ptx::cp_async_wait<0>();
    __syncwarp();
  }

  __device__ __forceinline__ const MaskOne* line_at(long long element) const {
    return reinterpret_cast<const MaskOne*>(line) + element;
  }

  template <bool Whole>
  __device__ __forceinline__ void bring_chunks(ptx::u64 step, int keys, ptx::u64 from) const {
    const int chunk = threadIdx.x % kSide, left = keys * kMaskBytes - 16 * chunk;
#pragma unroll
    for (int down = 0; down < Rows; down += kDown, from += kDown * step)
#pragma unroll
      for (int at = 0; at < kChunks; at += kSide) {
        if (at + kSide > kChunks && at + chunk >= kChunks) continue;
        const unsigned to_chunk = to + down * kAheadRow + 16 * at;
        const void* chunk_from = reinterpret_cast<const void*>(from + 16 * at);
        if constexpr (!Whole)
          ptx::cp_async16(to_chunk, chunk_from, below < down ? 0 : max(0, min(16, left - 16 * at)));
        else if (below >= down)
          ptx::cp_async16(to_chunk, chunk_from);
      }
  }

  __device__ __forceinline__ void bring_words(const Launch& launch, int keys, const MaskOne* from) const {
    const int lane = threadIdx.x % 32, last = keys * kMaskBytes / 4 - 1;
#pragma unroll 1
    for (int down = 0; down < Rows; ++down) {
      const unsigned* words = reinterpret_cast<const unsigned*>(from + min(down, max(0, below)) * launch.mask_row);
#pragma unroll
      for (int at = 0; at < kWords; at += 32)
        if (at + 32 <= kWords || at + lane < kWords)
          ptx::cp_async<4>(to + down * kAheadRow + 4 * (at + lane), words + min(at + lane, last));
    }
  }

  __device__ __forceinline__ void bring_keys(const Launch& launch, int keys, const MaskOne* from) const {
    constexpr int kWide = (kWords + 31) / 32, kAtOnce = kMask || Keys <= 64 ? 2 : 4;  // rows
    const int lane = threadIdx.x % 32;
#pragma unroll 1
    for (int down = 0; down < Rows; down += kAtOnce) {
      unsigned words[kAtOnce][kWide];
#pragma unroll
      for (int i = 0; i < kAtOnce * kWide; ++i)
        words[i / kWide][i % kWide] = word_of(from + min(down + i / kWide, max(0, below)) * launch.mask_row,
                                              (i % kWide * 32 + lane) * (4 / kMaskBytes), keys - 1, launch.mask_key);
#pragma unroll
      for (int i = 0; i < kAtOnce * kWide; ++i)
        if (const int at = i % kWide * 32 + lane; at < kWords)
          ptx::store_shared(to + (down + i / kWide) * kAheadRow + 4 * at, words[i / kWide][i % kWide]);
    }
  }
};

// A float in units of raw scores.
__device__ __forceinline__ float mask_scale(const Launch& launch) {
  return kMask ? 0.f : __fdividef(1.44269504f, launch.scale_log2);
}

// Two neighbours each of 16 rows that lie at `rows`, s[i] and the next one's: ldmatrix deals out 16 bits as products deal
// out scores, so many matrices at a time.
template <class Scores, int Matrices = 4, class Use>
__device__ __forceinline__ void each_two(unsigned rows, const Use& use) {
  const int lane = threadIdx.x % 32;
  if constexpr (kMaskBytes == 2) {
    const unsigned mine = rows + lane % 16 * kAheadRow + lane % (8 * Matrices) / 16 * 16;
#pragma unroll
    for (int i = 0; i < Scores::kCount; i += 2 * Matrices) {
      unsigned twos[Matrices];
      ptx::ldmatrix(twos, mine + 4 * i);
#pragma unroll
      for (int j = 0; j < Matrices; ++j) use(i + 2 * j, twos[j]);
    }
  } else {
    const unsigned mine = rows + lane / 4 * kAheadRow + lane % 4 * 2 * kMaskBytes;
#pragma unroll
    for (int i = 0; i < Scores::kCount; i += 2) {
      const unsigned from = mine + Scores::row(i) * kAheadRow + Scores::column(i) * kMaskBytes;
      if constexpr (kMaskBytes == 1)
        use(i, ptx::load_shared_half(from));
      else
        use(i, ptx::load_shared2(from));
    }
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
    const MaskOne* first = mask_of(launch, work);
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

// So many twos at a time.
template <int AtOnce, class Scores>
__device__ __forceinline__ void change_by_memory(Scores& s, const Launch& launch, const Work& work, int row,
                                                 int column) {
  constexpr int kTwos = Scores::kCount / 2, kAtOnce = AtOnce < kTwos ? AtOnce : kTwos;
  const float scale = mask_scale(launch);
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

// `ahead`: where this warp's rows lie in shared memory, of a kernel that keeps room for them.
template <class Scores>
__device__ __forceinline__ void change_mask(Scores& s, const Launch& launch, const Work& work, int row, int column,
                                            unsigned ahead) {
  if constexpr (kAheadRow > 0) {
    const float scale = mask_scale(launch);
    each_two<Scores>(ahead, [&](int i, MaskTwo two) { change_two(s[i], s[i + 1], two, scale); });
  } else {
    change_by_memory<kMaskAtOnce>(s, launch, work, row, column);
  }
}
