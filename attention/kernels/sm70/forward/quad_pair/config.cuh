// What NVRTC's defines decide: exactly one variant is compiled.
//
//   HEAD_DIM          a multiple of 16 up to 256: head dim as padded in shared memory
//   WARPS             of a block
//   ROWS_PER_WARP     16 or 32 query rows: 32 read K and V half as often from shared memory
//   SPLIT             warps that share their rows: each has scores of its part of a tile's keys, and its part of out's
//                     columns. 2 where the outputs of 16 rows would leave no room for their Q
//   TILE_KEYS         keys of one tile of K and V: two barriers a tile
//   BLOCKS            blocks a SM that registers are kept for
//   Q_SPANS           of 8 columns, whose fragments of Q stay in registers; the others' are read from shared memory for
//                     each tile
//   P_IN_REGISTERS    1: p becomes an operand by shuffles; 0: through shared memory
//   BF16              0: the tensor cores of Volta know float16 alone
//   VARLEN            1: sequences of many lengths, packed one after another
// and those of features, which launch.cuh names. It is generated, with Launch, the one argument: kernels.launch.source.
#pragma once
#include "launch.cuh"

constexpr int kHeadDim = HEAD_DIM, kWarps = WARPS, kWarpRows = ROWS_PER_WARP, kKeys = TILE_KEYS;
constexpr bool kPInRegisters = P_IN_REGISTERS, kBf16 = BF16, kVarlen = VARLEN;

constexpr int kSplit = SPLIT, kRowWarps = kWarps / kSplit, kScoreKeys = kKeys / kSplit, kColumns = kHeadDim / kSplit;
constexpr int kThreads = 32 * kWarps, kTileRows = kWarpRows * kRowWarps;
constexpr int kPanels = kWarpRows / 16;   // of 16 rows, the M of one product
constexpr int kBlocks = kScoreKeys / 16;  // of 16 keys, its N
constexpr int kSpans = kHeadDim / 8;      // of 16 bytes, two steps of K along the head dim
constexpr int kHeldSpans = Q_SPANS, kSharedSpans = kSpans - kHeldSpans;

static_assert(kHeadDim % 16 == 0 && kHeadDim <= 256 && kWarpRows % 16 == 0 && kKeys % 32 == 0 && !kBf16);
static_assert(kHeldSpans <= kSpans);
static_assert(kSplit == 1 || (kSplit == 2 && kColumns % 32 == 0 && !kPInRegisters));

// Rows in shared memory are padded, so that the eight lanes of each phase of a 16-byte load reach all 32 banks:
// eight neighbouring keys of one column of K by an odd number of 16 bytes; four keys of two neighbouring columns of V
// by twice an odd number.
constexpr int kRowBytes = kHeadDim * 2, kKPitch = kRowBytes + 16, kVPitch = kRowBytes + (kHeadDim % 32 ? 0 : 32);
constexpr int kKBytes = kKeys * kKPitch, kVBytes = kKeys * kVPitch;

// Panels of 16 rows of A. A phase reads two neighbouring rows and those eight below, which lie 32 bytes further.
constexpr int kHalfGap = 32;
constexpr int kQPitch = (kSharedSpans + 1 + kSharedSpans % 2) * 16;
constexpr int kQHalf = 8 * kQPitch + kHalfGap, kQPanel = 2 * kQHalf;
constexpr int kPPitch = kKeys * 2 + 16, kPHalf = 8 * kPPitch + kHalfGap, kPPanel = 2 * kPHalf;

// Behind them, where warps share rows, a float of each row and warp: what it is told of the others' keys.
struct Rooms {
  unsigned k, v, q, p, beside;

  __device__ __forceinline__ explicit Rooms(unsigned base) {
    k = base;
    v = k + kKBytes;
    q = v + kVBytes;
    p = q + (kSharedSpans ? kRowWarps * kPanels * kQPanel : 0);
    beside = p + (kPInRegisters ? 0 : kRowWarps * kPanels * kPPanel);
  }
};
