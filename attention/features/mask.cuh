// A mask of bytes, 0 hides, or of floats, which are added: in the dtype of the inputs, or 32 bits. What lies outside of the
// tensor is not read. A float is worth log2(e) / scale_log2 among raw scores: computed here, as a field of its own would
// move those of every build.
#pragma once
#include "ptx/convert.cuh"

// `row` and `column` are those of s[0].
template <class Scores>
__device__ __forceinline__ void change_mask_of_bytes(Scores& s, const Launch& launch, const Work& work, int row,
                                                     int column) {
  const unsigned char* bytes = launch.mask + work.batch * launch.mask_batch + work.head * launch.mask_head;
#pragma unroll
  for (int i = 0; i < Scores::kCount; ++i) {
    const int at_row = row + Scores::row(i), at_key = column + Scores::column(i);
    if (at_row >= work.queries || at_key >= work.keys) continue;
    if (!bytes[at_row * launch.mask_row + (at_key + (kRanges ? work.skipped : 0)) * launch.mask_key])
      s[i] = minus_infinity();
  }
}

// Two neighbouring keys of a row, of which `left` are in the tensor: in one load where `side_by_side` and aligned.
__device__ __forceinline__ float2 mask_floats(const void* at, long long step, bool side_by_side, int left) {
  if constexpr (kBias32) {
    const float* floats = static_cast<const float*>(at);
    if (side_by_side && left > 1) return *reinterpret_cast<const float2*>(floats);
    return {left > 0 ? floats[0] : 0.f, left > 1 ? floats[step] : 0.f};
  } else {
    const unsigned short* halves = static_cast<const unsigned short*>(at);
    unsigned word = 0;
    if (side_by_side && left > 1)
      word = *reinterpret_cast<const unsigned*>(halves);
    else
      word = (left > 0 ? halves[0] : 0u) | (left > 1 ? static_cast<unsigned>(halves[step]) << 16 : 0u);
    return kBf16 ? ptx::unpack_bf16(word) : ptx::unpack_f16(word);
  }
}

template <class Scores>
__device__ __forceinline__ void change_mask_of_floats(Scores& s, const Launch& launch, const Work& work, int row,
                                                      int column) {
  constexpr long long kBytes = kBias32 ? 4 : 2;
  const long long row_step = launch.mask_row * kBytes, key_step = launch.mask_key * kBytes;
  const unsigned char* first = launch.mask + (work.batch * launch.mask_batch + work.head * launch.mask_head) * kBytes +
                               row * row_step + (column + (kRanges ? work.skipped : 0)) * key_step;
  const bool side_by_side =
      launch.mask_key == 1 && (reinterpret_cast<ptx::u64>(first) | static_cast<ptx::u64>(row_step)) % (2 * kBytes) == 0;
  const float scale = __fdividef(1.44269504f, launch.scale_log2);
#pragma unroll
  for (int i = 0; i < Scores::kCount; i += 2) {
    const int left = row + Scores::row(i) < work.queries ? work.keys - column - Scores::column(i) : 0;
    const float2 two = mask_floats(first + Scores::row(i) * row_step + Scores::column(i) * key_step, launch.mask_key,
                                   side_by_side, left);
    s[i] += two.x * scale;
    s[i + 1] += two.y * scale;
  }
}

template <class Scores>
__device__ __forceinline__ void change_mask(Scores& s, const Launch& launch, const Work& work, int row, int column) {
  if constexpr (kMask)
    change_mask_of_bytes(s, launch, work, row, column);
  else
    change_mask_of_floats(s, launch, work, row, column);
}
