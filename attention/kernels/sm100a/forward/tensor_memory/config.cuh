// What NVRTC's defines decide: exactly one variant is compiled.
//
//   HEAD_DIM          64, 96, 128, 192 or 256: head dim as padded in shared memory
//   VALUE_DIM         that of V and of outputs, where it is another one, held at the next multiple of 32
//   TILE_KEYS         keys of one tile of K and V, 64 or 128
//   QUERY_TILES       tiles of 128 query rows a block works on at a time: 2, or 1 where tensor memory holds no more
//   STAGES            tiles of K and V in flight, both in one ring
//   POLYNOMIAL        of 32 exponentials, so many are polynomials on the FMA pipes, the others MUFU's
//   BF16              1 bfloat16, 0 float16
//   CTA_GROUP         2 where a pair of blocks shares each tile of K and V (block_pair.cuh)
//   DYNAMIC           1: blocks take tiles from a counter, else every gridDim.x-th
//   VARLEN            1: sequences of many lengths, packed one after another
// and those of features, which launch.cuh names. It is generated, with Launch, the one argument: kernels.launch.source.
//
// Tensor memory, 128 lanes of 512 columns. P, two 16-bit numbers to a column, takes the first half of the scores that it
// is made of.
//
//   0 to 127, 128 to 255    scores of even and of odd turns
//   from 256                outputs of each query tile, VALUE_DIM columns
#pragma once
#include "launch.cuh"

#ifndef CTA_GROUP
#define CTA_GROUP 1
#endif

constexpr int kHeadDim = HEAD_DIM, kKeys = TILE_KEYS, kQueryTiles = QUERY_TILES, kStages = STAGES;
constexpr int kPolynomial = POLYNOMIAL;
constexpr bool kBf16 = BF16, kDynamic = DYNAMIC, kVarlen = VARLEN;
#define VALUE_STEP 32  // columns of one piece of outputs, and of the narrowest panel of V
#include "value_dim.cuh"

constexpr bool kSlotsAwaited = true;  // schedule.cuh

// A tile of rows is a block's, or that of both blocks of a pair: they must see the same keys.
constexpr int kGroup = CTA_GROUP;
constexpr int kRows = 128, kBlockRows = kRows * kQueryTiles, kTileRows = kBlockRows * kGroup;
constexpr unsigned kColumns = 512, kScoreColumns = 128, kOutputs = 2 * kScoreColumns;

// A softmax warpgroup for each query tile, one that corrects outputs, and four warps with a role each.
constexpr int kSoftmaxWarps = 4 * kQueryTiles, kIssuer = kSoftmaxWarps + 4, kLoader = kIssuer + 1;
constexpr int kWriter = kIssuer + 2, kCleaner = kIssuer + 3, kThreads = 32 * (kIssuer + 4);

// Rows in shared memory are panels as wide as the span of the swizzle: 128 bytes where that divides the row.
template <int Dim>
struct Panels {
  static constexpr int kSpan = Dim % 64 ? 64 : 128, kWidth = kSpan / 2, kCount = Dim / kWidth;
};
// What a block holds of B: all columns, or its half: keys of K, and columns of V.
constexpr int kHeldKeys = kKeys / kGroup, kHeldValues = kValueDim / kGroup;
using KeyPanels = Panels<kHeadDim>;
using ValuePanels = Panels<kHeldValues>;
constexpr int kQBytes = kRows * kHeadDim * 2, kKBytes = kHeldKeys * kHeadDim * 2, kVBytes = kKeys * kHeldValues * 2;
constexpr int kStageBytes = kKBytes > kVBytes ? kKBytes : kVBytes;

// Outputs leave in pieces of 32 columns. Rows lie 80 bytes apart: of eight neighbours no two words share a bank.
constexpr int kPieceColumns = 32, kPiecePitch = 2 * kPieceColumns + 16, kPieceBytes = kRows * kPiecePitch;

// 64 Ki registers a SM: 128 at launch * 512 threads, or 168 * 384, redistributed in steps of 8. A softmax thread holds
// a whole row of scores.
constexpr int kSoftmaxRegisters = kQueryTiles == 2 ? 192 : 232, kCorrectionRegisters = kQueryTiles == 2 ? 64 : 120;
constexpr int kOtherRegisters = kQueryTiles == 2 ? 64 : 80;

static_assert(kHeadDim % 32 == 0 && kHeldValues % 32 == 0 && (kKeys == 64 || kKeys == 128) &&
              (kQueryTiles == 1 || kQueryTiles == 2));
static_assert(kGroup == 1 || (kGroup == 2 && !kDynamic), "the blocks of a pair take the same tiles, by their number");
static_assert(kOutputs + kQueryTiles * kValueDim <= kColumns, "scores and outputs fit tensor memory");

// Where everything lies in shared memory. Barriers, with who arrives, of a block by itself:
//   q_full, kv_full      the loader's bytes            q_empty, kv_empty    the tensor cores, done with it
//   kv_raw               the loader's bytes, of a last tile of V that is to be cleared first
//   s_full               the tensor cores: scores of a turn stand in tensor memory
//   factor_full          softmax warps: what outputs of the turn's query tile are to be multiplied by
//   ready                softmax and correction warps: P is there, and outputs are on its scale
//   o_full               the tensor cores: P V of a turn is added
//   sum_full, _empty     softmax, correction warps: sum and offset of each row, after the last turn
//   piece_full, _empty   correction warps, the writer: 32 columns of the output
//   tile_full, _empty    the loader, every other role: the next tile of rows
struct Rooms {
  unsigned q, kv, piece, factor, sum, offset, tile;
  unsigned q_full, q_empty, kv_full, kv_empty, kv_raw, s_full, factor_full, ready, o_full, sum_full, sum_empty,
      piece_full, piece_empty, tile_full, tile_empty, tensor_memory;

  __device__ __forceinline__ explicit Rooms(unsigned base) {
    q = base;
    kv = q + kQueryTiles * kQBytes;
    piece = kv + kStages * kStageBytes;
    factor = piece + 2 * kPieceBytes;
    sum = factor + 2 * kRows * 4;
    offset = sum + kQueryTiles * kRows * 4;
    tile = offset + kQueryTiles * kRows * 4;
    q_full = tile + 2 * 16;
    q_empty = q_full + 8 * kQueryTiles;
    kv_full = q_empty + 8 * kQueryTiles;
    kv_empty = kv_full + 8 * kStages;
    kv_raw = kv_empty + 8 * kStages;
    s_full = kv_raw + 8 * kStages;
    factor_full = s_full + 8 * 2;
    ready = factor_full + 8 * 2;
    o_full = ready + 8 * 2;
    sum_full = o_full + 8 * kQueryTiles;
    sum_empty = sum_full + 8 * kQueryTiles;
    piece_full = sum_empty + 8 * kQueryTiles;
    piece_empty = piece_full + 8 * 2;
    tile_full = piece_empty + 8 * 2;
    tile_empty = tile_full + 8 * 2;
    tensor_memory = tile_empty + 8 * 2;
  }
};
