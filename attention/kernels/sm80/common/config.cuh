// What NVRTC's defines decide: exactly one variant is compiled.
//
//   HEAD_DIM          a multiple of 16 up to 256: head dim as padded in shared memory
//   VALUE_DIM         that of V and of outputs, where it is another one
//   WARPS             of a block
//   ROWS_PER_WARP     16 or 32 query rows: 32 read K and V half as often from shared memory
//   TILE_KEYS         keys of one tile of K and V: one barrier a tile
//   SLICE_KEYS        keys whose scores a warp holds at a time
//   BLOCKS            blocks a SM that registers are kept for
//   Q_IN_REGISTERS    1: fragments of Q stay in registers; 0: they are read again from shared memory for each slice
//   AHEAD             fragments of K and V fetched before their products, 1 or 3
//   FENCE             0: none; 1: a __syncwarp between the two products of a step, which moves ptxas's order; n: and one
//                     at every nth fragment of the second
//   KEY_PARTS         1: keys of a tile of rows may be dealt to several blocks (common/key_splits.cuh)
//   IDLE_WARPS        1: warps whose rows no query uses multiply nothing
//   KEY_WARPS         warps that share rows and deal each tile's keys among them (split_keys/key_warps.cuh)
//   KEY_STAGES        where some do, tiles of keys in shared memory, all but one of them on their way
//   BF16              1 bfloat16, 0 float16
//   VARLEN            1: sequences of many lengths, packed one after another
// and those of features, which launch.cuh names. It is generated, with Launch, the one argument: kernels.launch.source.
#pragma once
#include "launch.cuh"

constexpr int kHeadDim = HEAD_DIM, kWarps = WARPS, kWarpRows = ROWS_PER_WARP, kKeys = TILE_KEYS, kSlice = SLICE_KEYS;
constexpr bool kQInRegisters = Q_IN_REGISTERS, kBf16 = BF16;
constexpr bool kVarlen = VARLEN;
#ifndef KEY_PARTS
#define KEY_PARTS 0
#define IDLE_WARPS 0
#endif
#ifndef KEY_WARPS
#define KEY_WARPS 1
#define KEY_STAGES 0
#endif
constexpr bool kKeySplits = KEY_PARTS, kIdleWarps = IDLE_WARPS;
#include "value_dim.cuh"

constexpr int kThreads = 32 * kWarps, kKeyWarps = KEY_WARPS, kRowWarps = kWarps / kKeyWarps;
constexpr int kTileRows = kWarpRows * kRowWarps;
constexpr int kPanels = kWarpRows / 16;              // of 16 rows, the M of one product
constexpr int kSlices = kKeys / kKeyWarps / kSlice;  // of a warp, in a tile
constexpr int kDepth = kHeadDim / 16;                // products along the head dim
constexpr int kValueDepth = kValueDim / 16;          // and fragments along the value dim

// A row of so many numbers in shared memory. Its chunks of 16 bytes are XORed with bits of the row's number, so that
// eight neighbouring rows of one column lie in eight different groups of four banks: three bits where rows are multiples
// of 128 bytes; two bits and the row's parity where of 64; and where of 32, one bit, since four rows in sequence meet
// every second group by themselves.
template <int Dim>
struct Swizzled {
  static constexpr int kBytes = Dim * 2, kXorBits = Dim % 32 ? 1 : Dim % 64 ? 2 : 3, kGroup = 1 << kXorBits;

  __device__ __forceinline__ static int bits(int row) { return row >> (3 - kXorBits) & (kGroup - 1); }
};
using KeyRow = Swizzled<kHeadDim>;  // Q's too
using ValueRow = Swizzled<kValueDim>;
constexpr int kKBytes = kKeys * KeyRow::kBytes, kVBytes = kKeys * ValueRow::kBytes,
              kQBytes = kTileRows * KeyRow::kBytes;

static_assert(kHeadDim % 16 == 0 && kHeadDim <= 256 && kValueDim % 16 == 0 && kValueDim <= 256);
static_assert(kWarpRows % 16 == 0 && kSlice % 16 == 0 && kKeys % (kKeyWarps * kSlice) == 0 && kWarps % kKeyWarps == 0);

// Where everything lies in shared memory: rings of two tiles of K and three of V (the last slice of one tile's p * V
// runs after the barrier that the next tile's scores wait for). Q on its way to registers passes through stages that
// the first tile does not use, where these hold it: the last two of V and the first of K.
constexpr int kKStages = KEY_STAGES ? KEY_STAGES : 2, kVStages = KEY_STAGES ? KEY_STAGES : 3;
constexpr int kRingBytes = kKStages * kKBytes + kVStages * kVBytes;

// Behind them a word of each warp, by which a block agrees that no sum has overflown, and one that says that the rows
// are run a second time.
constexpr int kQAt =
    !KEY_STAGES && kQInRegisters && kQBytes <= (kVStages - 1) * kVBytes + kKBytes ? kVBytes : kRingBytes;
constexpr int kVotesAt = kQAt == kRingBytes ? kRingBytes + kQBytes : kRingBytes;

struct Rooms {
  unsigned k, v, q, votes, second_time;

  __device__ __forceinline__ explicit Rooms(unsigned base) {
    v = base;
    k = base + kVStages * kVBytes;
    q = base + kQAt;
    votes = base + kVotesAt;
    second_time = votes + 4 * kWarps;
  }
};
