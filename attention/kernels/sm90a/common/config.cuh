// What NVRTC's defines decide: exactly one variant is compiled.
//
//   HEAD_DIM          a multiple of 16 up to 256: what products have of the head dim
//   VALUE_DIM         that of V and of outputs, where it is another one
//   TILE_KEYS         keys of one tile of K and V
//   WARPGROUPS        consumers of 64 query rows each, 2 or 3
//   STAGES            tiles of K, and of V, in flight: 2, or more for tiles of rows that cross one another
//   Q_IN_REGISTERS    1: consumers copy Q to registers, and its room is free for the next tile's at once
//   BF16              1 bfloat16, 0 float16
//   OVERLAP           1: scores of a tile are multiplied before p * V of the tile before, and softmax runs beside it
//   PINGPONG          1: warpgroups take turns at issuing products
//   LAZY              1: p is guessed by the largest scores so far, and outputs are rescaled where that fails; else in
//                     every tile
//   DYNAMIC           1: blocks take tiles from a counter, else every gridDim.x-th
//   CLUSTER           2: two blocks share a mask's rows (shared_mask.cuh); not given where each block is by itself
//   SHARED_KEYS       with CLUSTER: 1: they share K and V instead (shared_keys.cuh); not given where they do not
//   SEEDED            with CLUSTER: 1: scores begin as the mask, 2: and Q is scaled by a power of two, 0: neither
//   VARLEN            1: sequences of many lengths, packed one after another
//   KEY_PARTS         1: several blocks share the keys of a tile of rows (parts.cuh); not given where none do
//   PACK_GQA          so many heads of a group share a warpgroup's rows (work.cuh); not given where none do
// and those of features, which launch.cuh names, with AHEAD_ROW: what they read ahead of scores, in bytes a row. It is
// generated, with Launch, the one argument: kernels.launch.source.
#pragma once
#include "launch.cuh"

constexpr int kHeadDim = HEAD_DIM, kKeys = TILE_KEYS, kWarpgroups = WARPGROUPS, kStages = STAGES;
constexpr bool kQInRegisters = Q_IN_REGISTERS, kBf16 = BF16, kOverlap = OVERLAP, kPingpong = PINGPONG;
constexpr bool kLazy = LAZY, kDynamic = DYNAMIC;
constexpr bool kVarlen = VARLEN;
#ifdef KEY_PARTS
constexpr bool kKeyParts = KEY_PARTS;
#else
constexpr bool kKeyParts = false;
#endif
constexpr bool kSlotsAwaited = kKeyParts;  // schedule.cuh
#ifdef PACK_GQA
constexpr bool kShared = true;
#define PACK_SPAN 64  // of a warpgroup
#else
constexpr bool kShared = false;
#endif
#ifdef SHARED_KEYS
constexpr bool kPair = false, kKeysOfTwo = true;
#elif defined CLUSTER
constexpr bool kPair = true, kKeysOfTwo = false;
#else
constexpr bool kPair = false, kKeysOfTwo = false;
#endif
constexpr bool kTwoBlocks = kPair || kKeysOfTwo;
#include "value_dim.cuh"

constexpr int kGroupRows = 64, kTileRows = kGroupRows * kWarpgroups;
constexpr int kConsumerThreads = 128 * kWarpgroups, kThreads = kConsumerThreads + 128;

// Rows in shared memory are panels of `kSpan` bytes, the span of the swizzle: wide ones, but where a narrow one more holds
// what is left of a row. Products take no more of the last than the dim, and TMA fills the rest with zeros. For 16 columns
// beyond whole panels a wide one is better, mostly empty as it is: at head dim 72, whose rows lie across the lines of the
// L2, narrow ones took 10 to 14 % longer, at 80 up to 2 % (H100). Columns of V are an operand's N, of which the PTX ISA does
// not say that the last span may be taken in part: an H100 does so.
template <int Dim, int Span>
struct Panels {
  static constexpr int kSpan = Span, kWidth = kSpan / 2, kCount = (Dim + kWidth - 1) / kWidth;
  static constexpr int kRowBytes = kCount * kSpan;
};
template <int Dim>
using PanelsOf = Panels<Dim, Dim <= 32 || Dim % 64 == 32 ? 64 : 128>;
using KeyPanels = PanelsOf<kHeadDim>;
using ValuePanels = PanelsOf<kValueDim>;
constexpr int kQBytes = kGroupRows * KeyPanels::kRowBytes;
constexpr int kKBytes = kKeys * KeyPanels::kRowBytes, kVBytes = kKeys * ValuePanels::kRowBytes;

// Rows of a mask come by TMA, in boxes of a warp's 16. Lanes that copied them (cp.async) took a thread the registers of a
// dozen scores, and 5 to 20 % more time of float masks (H200). Keys of ranges begin anywhere, and TMA takes an innermost
// coordinate at whole 16 bytes alone: there lanes copy.
constexpr bool kBoxes = kAheadRow > 0 && !kRanges;
constexpr int kWarpRows = 16;
static_assert(!kPair || kBoxes);
static_assert(!kKeysOfTwo || !(kVarlen || kRanges || kWindow || kKeyParts || kShared));

// Scores begin as the mask, and products are added to it: that saves an instruction each, and bools two. A warp spends two
// instructions and a half on each score with a mask where it spends four without, and issues one in two clocks in either
// case: of head dim 64 masks take that much longer, whatever the L2 gives (H200). Floats count in units of raw scores,
// unless Q is scaled, by a power of two that rounds nothing. A hidden score of +inf or NaN would be NaN under bools, which
// are hidden again then.
#ifdef SEEDED
constexpr bool kSeeded = SEEDED > 0, kScaledQ = SEEDED == 2;
#else
constexpr bool kSeeded = false, kScaledQ = false;
#endif
constexpr bool kHideAgain = kSeeded && kMask;

// Two warpgroups have registers for a mask's numbers, which are then read while scores are multiplied: 4 % at value dim
// 128, up to 6 at 256 (H200). More than some 200 values in a thread spill; at 64, and of bools at 128, it lost 1 to 2 %.
constexpr int kHeldOfMask = kKeys / 4 * (kBias32 ? 2 : 1);
constexpr bool kMaskHeld = kBoxes && !kSeeded && kWarpgroups == 2 && !kSoftcap && !kAlibi &&
                           kValueDim >= (kMask ? 192 : 128) &&
                           kKeys * 3 / 4 + kValueDim / 2 + kHeldOfMask + (kQInRegisters ? kHeadDim / 4 : 0) <= 192;

// The largest scores of a tile are looked for where a guess without them fails, but where lanes read the mask: its rows see
// a first key anywhere. No p of a guess exceeds the sum of a tile's, which float16 holds; 32 of a thread's numbers reach it
// where their maximum has grown by 2^8, FlashAttention-4's bound for outputs that are rescaled lazily.
constexpr bool kGuesses = kLazy && (!kHiding || kBoxes);
constexpr float kMostOfTile = 8192.f;

// Of short rows the first scores are multiplied beside the last p * V of the rows before, whose outputs are stored behind
// the first softmax. Then the next rows' Q, K and V have to be there that much earlier: a ring of two tiles is too short.
// It takes 3 to 8 % less time of up to 512 keys, and up to 4 more of longer rows (H200).
constexpr bool kCrosses = kStages > 2;
static_assert(!kCrosses || kQInRegisters);

// V is given back before the second half of a guess (row_softmax.cuh). Of more than 64 value columns the fastest tile of a
// problem took 1 to 2 % longer so, beside a mask 1 to 4, where rows cross up to 5 (H200, sets a 16 and 19, floors 4 and 5).
// Up to 96 three warpgroups with 96 keys took 0.7 to 2.1 less, with 64 and 80 from 4 less to 3 more (released_values.csv).
constexpr bool kReleasesFirst =
    (kValueDim <= 64 || (kValueDim <= 96 && kWarpgroups == 3 && kKeys >= 96)) && !kHiding && !kCrosses;

// K is given back before most of a guess (row_softmax.cuh): of few keys a step is shorter than the way there and back. Of
// up to 96 keys and 96 or 128 value columns it takes 0 to 15 % less time, of 112 from 3 less to 3.5 more (H100).
constexpr bool kKeysFirst = kOverlap && kWarpgroups == 2 && kKeys <= 96 && kValueDim > 64 && !kHiding && !kAlibi;

// 64 Ki registers a SM: (168 at launch) * 384 or (128) * 512, redistributed in steps of 8. What lives in both roles is
// spilled in both where the producer's do not hold it: with these features, or with three panels of K or more than four
// of either, they must be more, whatever the tile is.
constexpr int kPanelsOfRow = KeyPanels::kCount > ValuePanels::kCount ? KeyPanels::kCount : ValuePanels::kCount;
constexpr bool kMany = kVarlen || kCrowded || kTwoBlocks || kKeyParts || kShared,
               kManyPanels = KeyPanels::kCount == 3 || kPanelsOfRow > 4;
constexpr int kProducerRegisters = kWarpgroups == 3 ? (kManyPanels ? 56 : 32) : (kMany || kManyPanels ? 40 : 24);
constexpr int kConsumerRegisters = kWarpgroups == 3 ? (kManyPanels ? 152 : 160) : (kMany || kManyPanels ? 232 : 240);

static_assert(kHeadDim % 16 == 0 && kHeadDim <= 256 && kKeys % 16 == 0 && kKeys <= 256);
static_assert(kValueDim % 16 == 0 && kValueDim <= 256);
static_assert(kWarpgroups == 2 || kWarpgroups == 3);

// Where everything lies in shared memory.
struct Rooms {
  unsigned q, k, v, ahead, q_full, q_empty, k_full, k_empty, v_full, v_empty, tile_full, tile_empty, tile, v_raw,
      mask_full, mask_empty, number, number_full, number_empty;

  __device__ __forceinline__ explicit Rooms(unsigned base) {
    q = base;
    k = q + kWarpgroups * kQBytes;
    v = k + kStages * kKBytes;
    ahead = v + kStages * kVBytes;
    q_full = ahead + kTileRows * kAheadRow;
    q_empty = q_full + 8 * kWarpgroups;
    k_full = q_empty + 8 * kWarpgroups;
    k_empty = k_full + 8 * kStages;
    v_full = k_empty + 8 * kStages;
    v_empty = v_full + 8 * kStages;
    tile_full = v_empty + 8 * kStages;
    tile_empty = tile_full + 8 * 2;
    // Counted from the base it is no value of its own, for which builds that read ahead have no register in both roles;
    // in others it would move code that was timed.
    tile = kAheadRow > 0 ? base + (tile_empty + 8 * 2 - base + 15) / 16 * 16 : (tile_empty + 8 * 2 + 15) / 16 * 16;
    v_raw = tile + 16 * 2;
    mask_full = v_raw + 8 * kStages;
    mask_empty = mask_full + 8 * kWarpgroups;
    number = mask_empty + 8 * kWarpgroups;
    number_full = number + 8;
    number_empty = number_full + 8;
  }
};
