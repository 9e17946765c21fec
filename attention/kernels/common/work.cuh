// Which rows a tile number stands for, and which keys those rows see.
//
// Neighbours in time are rows of the same head, so that their K and V meet in the L2. Causal rows see different numbers of
// keys: sections of heads (common.family.section_of) are taken one after another, longest rows first, so that the blocks
// end together. So are those of a mask in float32 that heads share: its rows meet in the L2 too.
//
// Packed sequences of like lengths have each as many tiles as the longest. With DEALT, for lengths that are very unlike,
// each has its own: those of sequence b begin at number b + query_starts[b] / kTileRows of a head. That leaves it room
// for all its rows, wherever it lies in a tile, and at most one tile without any. The number grows with b, so that a
// search finds the sequence of a tile, without a table that somebody would have to make first.
//
// With PACK_GQA the query heads that share K and V share tiles of rows as well: row r is query r / group of the group's
// head r % group (FlashAttention-3 has the name). Heads of a launch are then those of K and V. 1 serves any group, a larger
// number that group alone. With PACK_SPAN so many rows begin with a query of their own, as a box of TMA does: behind the
// last whole query of a span rows are nobody's.
//
// With RANGES a sequence uses a part of its rows alone (features/ranges.cuh): queries and keys are those that are used,
// and `rows` are all of its slot, of which those that are not used are written too.
//
// With CLUSTER its blocks take the same rows of as many neighbouring heads, the first of which a tile names. With
// SHARED_KEYS they take as many neighbouring tiles of rows of one head, which go over the same keys.
//
// config.cuh is the kernel's own: the tile, the features, and its Launch.
#pragma once
#include "config.cuh"
#include "features/ranges.cuh"
#include "ptx/memory.cuh"

#ifndef DEALT
#define DEALT 0
#endif
constexpr bool kDealt = DEALT;

#ifndef PACK_GQA
#define PACK_GQA 0
#endif
constexpr bool kPackGqa = PACK_GQA > 0;
#ifndef PACK_SPAN
#define PACK_SPAN 1
#endif
constexpr int kPackSpan = PACK_SPAN;

#ifdef CLUSTER
constexpr int kCluster = CLUSTER;
#else
constexpr int kCluster = 1;
#endif
#ifdef SHARED_KEYS
constexpr int kHeadsOfCluster = 1, kRowsOfCluster = kTileRows * kCluster;
#else
constexpr int kHeadsOfCluster = kCluster, kRowsOfCluster = kTileRows;
#endif
constexpr bool kBySections = kCausal || (kCluster > 1 && kBias32);
// Sequences have lengths of their own, and behind their last key lies what may be NaN.
constexpr bool kOwnLengths = kVarlen || kRanges;

// Query heads that share a tile's rows. Builds in which none do have no such member: it would move registers.
template <int Packed>
struct GroupOfRows {
  static constexpr int group = Packed ? Packed : 1;

  __device__ __forceinline__ static GroupOfRows of(int) { return {}; }
};

template <>
struct GroupOfRows<1> {
  int group;

  __device__ __forceinline__ static GroupOfRows of(int heads) { return {heads}; }
};

// A tile of query rows: its first row, and the sequence it belongs to. `query_start` and `key_start` are where that
// sequence lies in its tensors, `plane` is their batch: 0 where packed. Keys [first, last) come in tiles.
struct Work : RowsOfSlot<kRanges>, GroupOfRows<PACK_GQA> {
  int row, head, batch;
  int plane, queries, keys, query_start, key_start;
  int right, left, first, last;

  __device__ __forceinline__ bool sees_nothing() const { return first == last; }
  __device__ __forceinline__ int query_of(int row) const {
    if (kPackGqa && kPackSpan > 1) return row / kPackSpan * (kPackSpan / group) + row % kPackSpan / group;
    return kPackGqa ? row / group : row;
  }
  __device__ __forceinline__ int head_of(int row) const {
    if (kPackGqa && kPackSpan > 1) return head * group + row % kPackSpan % group;
    return kPackGqa ? head * group + row % group : head;
  }
  // Whether it is a query's.
  __device__ __forceinline__ bool has(int row) const {
    return !kPackGqa || kPackSpan == 1 || row % kPackSpan < kPackSpan / group * group;
  }
};

// The head of K and V that a tile's rows see.
__device__ __forceinline__ int kv_head_of(const Launch& launch, const Work& work) {
  return kPackGqa ? work.head : work.head / launch.heads_per_kv;
}

constexpr unsigned kNoTile = ~0u;

// The first of a sequence's tiles of rows, of those of all sequences of a head.
__device__ __forceinline__ int first_tile(const Launch& launch, int sequence) {
  return sequence + launch.query_starts[sequence] / kTileRows;
}

// The last sequence whose tiles begin no later than this one, or the first one of all.
__device__ __forceinline__ int sequence_of(const Launch& launch, int row_tile) {
  int found = 0, beyond = launch.batch;
#pragma unroll 1
  while (beyond - found > 1) {
    const int middle = (found + beyond) / 2;
    if (first_tile(launch, middle) <= row_tile)
      found = middle;
    else
      beyond = middle;
  }
  return found;
}

// Row, head and batch of a tile; row kNoTile where there are no more.
__device__ __forceinline__ ptx::vec4 divided(const Launch& launch, int tile) {
  if (tile >= launch.tiles) return {kNoTile, 0, 0, 0};
  int row_tile, pair;
  if (kBySections) {
    const int section_tiles = launch.section * launch.row_tiles,
              pairs = (kDealt ? 1 : launch.batch) * (launch.heads / kHeadsOfCluster);
    const int section = tile / section_tiles, within = tile - section * section_tiles;
    const int width = min(launch.section, pairs - section * launch.section);
    row_tile = launch.row_tiles - 1 - within / width;
    pair = section * launch.section + within % width;
  } else {
    row_tile = tile % launch.row_tiles;
    pair = tile / launch.row_tiles;
  }
  if constexpr (kDealt) {
    const int sequence = sequence_of(launch, row_tile), first = first_tile(launch, sequence);
    row_tile = row_tile < first ? launch.row_tiles : row_tile - first;  // rows before the first sequence are nobody's
    return {static_cast<unsigned>(row_tile * kTileRows), static_cast<unsigned>(pair), static_cast<unsigned>(sequence),
            0};
  }
  const int heads = launch.heads / kHeadsOfCluster;
  const unsigned head = pair % heads * kHeadsOfCluster, batch = pair / heads;
  return {static_cast<unsigned>(row_tile * kRowsOfCluster), head, batch, 0};
}

__device__ __forceinline__ Work work_of(const Launch& launch, const ptx::vec4& tile) {
  const auto group = GroupOfRows<PACK_GQA>::of(launch.heads_per_kv);
  Work work{{}, group, static_cast<int>(tile.x), static_cast<int>(tile.y), static_cast<int>(tile.z)};
  work.plane = kVarlen ? 0 : work.batch;
  work.query_start = kVarlen ? launch.query_starts[work.batch] : 0;
  work.key_start = kVarlen ? launch.key_starts[work.batch] : 0;
  work.queries = kVarlen ? launch.query_starts[work.batch + 1] - work.query_start : launch.queries;
  work.keys = kVarlen ? launch.key_starts[work.batch + 1] - work.key_start : launch.keys;
  use_ranges(work, launch);
  work.right = launch.right + (kOwnLengths ? launch.moves * (work.keys - work.queries) : 0);
  work.left = launch.left + (kOwnLengths ? launch.moves * (work.keys - work.queries) : 0);
  int end = work.keys, begin = 0;
  if constexpr (kPackGqa) {
    if (kCausal) end = min(end, work.query_of(work.row + kTileRows - 1) + 1 + work.right);
    if (kWindow) begin = max(0, work.query_of(work.row) + work.left);
  } else {
    // Not by query_of: ptxas would order the sums otherwise, and builds that were timed would be others.
    const int row = kRowsOfCluster == kTileRows ? work.row : work.row / kRowsOfCluster * kRowsOfCluster;
    if (kCausal) end = min(end, row + kRowsOfCluster + work.right);
    if (kWindow) begin = max(0, work.row + work.left);
  }
  const int first = kPackGqa ? work.query_of(work.row) : work.row;
  const bool nothing = end <= begin || (kOwnLengths && first >= work.queries);
  work.first = nothing ? 0 : static_cast<unsigned>(begin) / kKeys;
  work.last = nothing ? 0 : static_cast<unsigned>(end + kKeys - 1) / kKeys;
  return work;
}
