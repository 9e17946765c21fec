// What NVRTC's defines decide: exactly one variant is compiled.
//
//   HEAD_DIM          a multiple of 16 up to 256: head dim as padded in shared memory
//   WARPS             of a block
//   ROWS_PER_WARP     16 or 32 query rows: 32 read K and V half as often from shared memory
//   TILE_KEYS         keys of one tile of K and V: two barriers a tile
//   BLOCKS            blocks a SM that registers are kept for
//   Q_IN_REGISTERS    1: fragments of Q stay in registers; 0: they are read again from shared memory for each tile
//   KEY_PARTS         1: keys of a tile of rows may be dealt to several blocks (key_splits.cuh)
//   BF16              0: the tensor cores of Turing know float16 alone
//   VARLEN            1: sequences of many lengths, packed one after another
// and those of features, which launch.cuh names. It is generated, with Launch, the one argument: kernels.launch.source.
#pragma once
#include "launch.cuh"

constexpr int kHeadDim = HEAD_DIM, kWarps = WARPS, kWarpRows = ROWS_PER_WARP, kKeys = TILE_KEYS;
constexpr bool kQInRegisters = Q_IN_REGISTERS, kKeySplits = KEY_PARTS, kBf16 = BF16, kVarlen = VARLEN;

constexpr int kThreads = 32 * kWarps, kTileRows = kWarpRows * kWarps;
constexpr int kPanels = kWarpRows / 16;  // of 16 rows, the M of one product
constexpr int kBlocks = kKeys / 16;      // of 16 keys, those of one ldmatrix
constexpr int kDepth = kHeadDim / 16;    // of 16 columns, likewise
constexpr int kSpans = kHeadDim / 8;     // of 16 bytes, the K of one product of scores

static_assert(kHeadDim % 16 == 0 && kHeadDim <= 256 && kWarpRows % 16 == 0 && kKeys % 16 == 0 && !kBf16);

// Rows in shared memory are an odd number of 16 bytes long, so that eight neighbouring rows of one column, a matrix of
// ldmatrix, reach all 32 banks.
constexpr int kRowBytes = kHeadDim * 2, kPitch = kRowBytes + 16, kKPitch = kPitch, kVPitch = kPitch;
constexpr int kTileBytes = kKeys * kPitch;

struct Rooms {
  unsigned k, v, q;

  __device__ __forceinline__ explicit Rooms(unsigned base) : k(base), v(base + kTileBytes), q(base + 2 * kTileBytes) {}
};
