// What NVRTC's defines decide: exactly one variant is compiled.
//
//   HEAD_DIM          64, 96, 128, 192 or 256: head dim as padded in shared memory
//   TILE_KEYS         keys of one tile of K and V
//   WARPGROUPS        consumers of 64 query rows each, 2 or 3
//   STAGES            tiles of K, and of V, in flight
//   Q_IN_REGISTERS    1: consumers copy Q to registers, and its room is free for the next tile's at once
//   BF16              1 bfloat16, 0 float16
//   CAUSAL, WINDOW    1 where keys right, or left, of a band about the diagonal are hidden
//   OVERLAP           1: scores of a tile are multiplied before p * V of the tile before, and softmax runs beside it
//   PINGPONG          1: warpgroups take turns at issuing products
//   LAZY              1: outputs are rescaled where a maximum has grown by more than 2^8, else wherever it has grown
//   DYNAMIC           1: blocks take tiles from a counter, else every gridDim.x-th
//   VARLEN            1: sequences of many lengths, packed one after another
//   SOFTCAP, ALIBI, SINKS, MASK    1 where scores are capped, biased by distance, joined by a sink, masked by bytes
#pragma once
#include "ptx/tma.cuh"

constexpr int kHeadDim = HEAD_DIM, kKeys = TILE_KEYS, kWarpgroups = WARPGROUPS, kStages = STAGES;
constexpr bool kQInRegisters = Q_IN_REGISTERS, kBf16 = BF16, kCausal = CAUSAL, kWindow = WINDOW, kOverlap = OVERLAP,
               kPingpong = PINGPONG;
constexpr bool kLazy = LAZY, kDynamic = DYNAMIC;
constexpr bool kVarlen = VARLEN, kSoftcap = SOFTCAP, kAlibi = ALIBI, kSinks = SINKS, kMask = MASK;

constexpr int kGroupRows = 64, kTileRows = kGroupRows * kWarpgroups;
constexpr int kConsumerThreads = 128 * kWarpgroups, kThreads = kConsumerThreads + 128;

// Rows in shared memory are panels of `kSpan` bytes, the span of the swizzle: 128 where that divides the row.
constexpr int kSpan = kHeadDim % 64 ? 64 : 128, kPanelWidth = kSpan / 2, kPanels = kHeadDim / kPanelWidth;
constexpr int kQBytes = kGroupRows * kHeadDim * 2, kTileBytes = kKeys * kHeadDim * 2;

// 64 Ki registers a SM: (168 at launch) * 384 or (128) * 512, redistributed in steps of 8. What lives in both roles is
// spilled in both where the producer's do not hold it: with these features, or three panels a row, they must be more,
// whatever the tile is.
constexpr bool kMany = kWindow || kVarlen || kSoftcap || kAlibi, kThreePanels = kPanels == 3;
constexpr int kProducerRegisters = kWarpgroups == 3 ? (kThreePanels ? 56 : 32) : (kMany || kThreePanels ? 40 : 24);
constexpr int kConsumerRegisters = kWarpgroups == 3 ? (kThreePanels ? 152 : 160) : (kMany || kThreePanels ? 232 : 240);

static_assert(kHeadDim % 32 == 0 && kHeadDim <= 256 && kKeys % 16 == 0 && kKeys <= 256);
static_assert(kWarpgroups == 2 || kWarpgroups == 3);

// Everything that a launch says, as one argument. Strides are in elements; those of Q, K and V are in the maps, whose
// dimensions are (head dim, sequence, head, batch).
struct Launch {
  ptx::TensorMap q, k, v;
  void* out;
  float* lse;  // (batch, heads, queries), or (heads, all queries) where packed; natural logarithm
  long long out_row, out_head, out_batch;
  int* counters;                         // {tiles taken, blocks that are done}, both 0 before and after a launch
  const int *query_starts, *key_starts;  // of each sequence and the end of the last; null unless VARLEN
  const float* alibi;                    // slope of each (batch, head)
  const float* sinks;                    // logit of each head
  const unsigned char* mask;             // 0 hides
  long long mask_row, mask_key, mask_head, mask_batch;
  int batch, heads, heads_per_kv, queries, keys, head_dim;  // where packed, rows of all that the tensors hold
  // Query i sees keys j with i + left <= j <= i + right; where packed, moves * (keys - queries) is added to both.
  int right, left, moves;
  int row_tiles, tiles, section, alibi_batch, alibi_head;
  float scale_log2;   // of scores as SOFTCAP left them
  float slack;        // 8 / scale_log2: by so much may a score exceed its row's maximum before outputs are rescaled
  float softcap;      // softmax scale / cap
  float alibi_scale;  // log2(e) / scale_log2: what a slope is worth among raw scores
  int blocks;         // of the grid: read in its loop, gridDim takes a register that the producer has not
};

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
