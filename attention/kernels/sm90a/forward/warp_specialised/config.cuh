// What NVRTC's defines decide: exactly one variant is compiled.
//
//   HEAD_DIM          64, 96, 128, 192 or 256: head dim as padded in shared memory
//   TILE_KEYS         keys of one tile of K and V
//   WARPGROUPS        consumers of 64 query rows each, 2 or 3
//   STAGES            tiles of K, and of V, in flight
//   Q_IN_REGISTERS    1: consumers copy Q to registers, and its room is free for the next tile's at once
//   BF16              1 bfloat16, 0 float16
//   OVERLAP           1: scores of a tile are multiplied before p * V of the tile before, and softmax runs beside it
//   PINGPONG          1: warpgroups take turns at issuing products
//   LAZY              1: outputs are rescaled where a maximum has grown by more than 2^8, else wherever it has grown
//   DYNAMIC           1: blocks take tiles from a counter, else every gridDim.x-th
//   VARLEN            1: sequences of many lengths, packed one after another
// and those of features, which launch.cuh names. It is generated, with Launch, the one argument: kernels.launch.source.
#pragma once
#include "launch.cuh"

constexpr int kHeadDim = HEAD_DIM, kKeys = TILE_KEYS, kWarpgroups = WARPGROUPS, kStages = STAGES;
constexpr bool kQInRegisters = Q_IN_REGISTERS, kBf16 = BF16, kOverlap = OVERLAP, kPingpong = PINGPONG;
constexpr bool kLazy = LAZY, kDynamic = DYNAMIC;
constexpr bool kVarlen = VARLEN;

constexpr int kGroupRows = 64, kTileRows = kGroupRows * kWarpgroups;
constexpr int kConsumerThreads = 128 * kWarpgroups, kThreads = kConsumerThreads + 128;

// Rows in shared memory are panels of `kSpan` bytes, the span of the swizzle: 128 where that divides the row.
constexpr int kSpan = kHeadDim % 64 ? 64 : 128, kPanelWidth = kSpan / 2, kPanels = kHeadDim / kPanelWidth;
constexpr int kQBytes = kGroupRows * kHeadDim * 2, kTileBytes = kKeys * kHeadDim * 2;

// 64 Ki registers a SM: (168 at launch) * 384 or (128) * 512, redistributed in steps of 8. What lives in both roles is
// spilled in both where the producer's do not hold it: with these features, or three panels a row, they must be more,
// whatever the tile is.
constexpr bool kMany = kVarlen || kCrowded, kThreePanels = kPanels == 3;
constexpr int kProducerRegisters = kWarpgroups == 3 ? (kThreePanels ? 56 : 32) : (kMany || kThreePanels ? 40 : 24);
constexpr int kConsumerRegisters = kWarpgroups == 3 ? (kThreePanels ? 152 : 160) : (kMany || kThreePanels ? 232 : 240);

static_assert(kHeadDim % 32 == 0 && kHeadDim <= 256 && kKeys % 16 == 0 && kKeys <= 256);
static_assert(kWarpgroups == 2 || kWarpgroups == 3);

// Where everything lies in shared memory.
struct Rooms {
  unsigned q, k, v, q_full, q_empty, k_full, k_empty, v_full, v_empty, tile_full, tile_empty, tile, v_raw;

  __device__ __forceinline__ explicit Rooms(unsigned base) {
    q = base;
    k = q + kWarpgroups * kQBytes;
    v = k + kStages * kTileBytes;
    q_full = v + kStages * kTileBytes;
    q_empty = q_full + 8 * kWarpgroups;
    k_full = q_empty + 8 * kWarpgroups;
    k_empty = k_full + 8 * kStages;
    v_full = k_empty + 8 * kStages;
    v_empty = v_full + 8 * kStages;
    tile_full = v_empty + 8 * kStages;
    tile_empty = tile_full + 8 * 2;
    tile = (tile_empty + 8 * 2 + 15) / 16 * 16;
    v_raw = tile + 16 * 2;
  }
};
