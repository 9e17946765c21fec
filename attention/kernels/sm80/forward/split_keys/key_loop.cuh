// The main loop of warps that share rows, each with its own keys of every tile.
//
// One query of one head fills a sixteenth of one warp's rows. By the pipeline of many rows that warp alone multiplied,
// and its steps took longer than K and V to come; a tile ahead was not enough of them on the way. Here scores, softmax
// and p * V of a tile follow one another, as what they wait for is memory: all tiles but one are under way.
#pragma once
#include "consecutive.cuh"
#include "pipeline.cuh"

// What warps that share rows have of these comes to lie where tiles lay: of each row its outputs, and eight words that hold
// two, by which neighbouring rows begin 8 or 24 banks apart.
constexpr int kJoinedFloats = kValueDim + 8;
constexpr int kJoinedBytes = 4 * kWarps * kWarpRows * kJoinedFloats;

struct KeyRooms : Rooms {
  __device__ __forceinline__ explicit KeyRooms(const Rooms& rooms) : Rooms(rooms) {
    votes = v + (kVotesAt > kJoinedBytes ? kVotesAt : kJoinedBytes);
    second_time = votes + 4 * kWarps;
  }
};

struct KeyLoop : Pipeline {
  static constexpr int kStages = kKStages;

  const KeyRooms at{Pipeline::at};

  const typename LoaderOf<KeyRow>::Type k_loader{};
  const typename LoaderOf<ValueRow>::Type v_loader{};
  int first, last;  // queries

  __device__ __forceinline__ explicit KeyLoop(const Launch& launch) : Pipeline(launch) {}

  // Of this warp's rows: divisions stand outside of the loop.
  __device__ __forceinline__ void find_queries(const Work& work) {
    first = work.query_of(work.row + warp_row());
    last = work.query_of(work.row + warp_row() + kWarpRows - 1);
  }

  // Whether some row of this warp may see one of a slice of keys, and whether some may not see some of them.
  __device__ __forceinline__ bool is_seen(const Work& work, int key) const {
    return key < work.keys && (!kCausal || key <= last + work.right) && (!kWindow || key + kSlice > first + work.left);
  }

  __device__ __forceinline__ bool is_masked(const Work& work, int key) const {
    return key + kSlice > work.keys || (kCausal && key + kSlice > first + work.right + 1) ||
           (kWindow && key < last + work.left);
  }

  // The next tile downwards, into the stage of tile number `number`; without one an empty group, which is counted too.
  template <bool Whole>
  __device__ __forceinline__ void load_tile(const Work& work, int number) {
    const int tile = work.last - 1 - number, stage = number % kStages, rows = work.keys - tile * kKeys;
    if (tile >= work.first) {
      k_loader.template load<Whole, kKeys>(at.k + stage * kKBytes, k_from, launch.k_row, rows, launch.head_dim, k_lead);
      v_loader.template load<Whole, kKeys>(at.v + stage * kVBytes, v_from, launch.v_row, rows, out_columns(launch),
                                           v_lead);
      k_from -= kKeys * launch.k_row;
      v_from -= kKeys * launch.v_row;
    }
    ptx::cp_async_commit();
  }

  // This warp's keys of a tile.
  __device__ __forceinline__ void take(const Work& work, int number, bool far) {
    const int stage = number % kStages;
#pragma unroll 1
    for (int slice = kSlices - 1; slice >= 0; --slice) {
      const int mine = warp_key() + slice * kSlice, key = (work.last - 1 - number) * kKeys + mine;
      if (!is_seen(work, key)) continue;
      multiply_scores(at.k + stage * kKBytes + mine * KeyRow::kBytes);
      adjust<false>(work, key);
      if (is_masked(work, key)) hide(work, key);
      raise(far);
      multiply_values(at.v + stage * kVBytes + mine * ValueRow::kBytes);
    }
  }

  __device__ __forceinline__ void hide(const Work& work, int key) {
    hide_outside(s[0], work, work.row + warp_row() + lane() / 4, key + lane() % 4 * 2);
  }

  // Where the last tile of keys lies; Q is on its way. Not shared with Pipeline::begin, whose builds it would reorder.
  __device__ __forceinline__ void aim(const Work& work) {
    const int kv_head = kv_head_of(launch, work);
    find_leads(kv_head);
    const int key = work.key_start + (work.last - 1) * kKeys;
    k_from = first_row(work, launch.k, launch.k_batch, kv_head * launch.k_head, (key + k_loader.row) * launch.k_row,
                       k_loader.column - k_lead);
    v_from = first_row(work, launch.v, launch.v_batch, kv_head * launch.v_head, (key + v_loader.row) * launch.v_row,
                       v_loader.column - v_lead);
    if constexpr (kPackGqa) return load_group(work);
    const long long row = work.query_start + work.row + loader.row;
    loader.load<false, kTileRows>(at.q,
                                  first_row(work, launch.q, launch.q_batch, work.head * launch.q_head,
                                            row * launch.q_row, loader.column - k_lead),
                                  launch.q_row, work.queries - work.row, launch.head_dim, k_lead);
  }

  // As Pipeline::run.
  __device__ __forceinline__ bool run(const Work& work) {
    aim(work);
    load_tile<false>(work, 0);
#pragma unroll
    for (int i = 1; i < kStages - 1; ++i) load_tile<true>(work, i);
    clear();
    find_queries(work);
    const bool idle = kIdleWarps && first >= work.queries;
    const int tiles = work.last - work.first;
#pragma unroll 1
    for (int number = 0; number < tiles; ++number) {
      ptx::cp_async_wait<kStages - 2>();
      __syncthreads();  // this tile has come, and the one before it is read
      load_tile<true>(work, number + kStages - 1);
      if (idle) continue;
      if (kQInRegisters && number == 0) hold_queries();
      take(work, number, ptx::load_shared(at.second_time) != 0);
    }
    ptx::cp_async_wait<0>();
    scale_offsets(state[0], 1.f);
    return settled();
  }

  // As Pipeline::settled, and with one barrier where rows are not run again: behind it no tile is read.
  __device__ __forceinline__ bool settled() const {
    const bool mine = __all_sync(~0u, finite());
    if (lane() == 0) ptx::store_shared(at.votes + threadIdx.x / 32 * 4, mine);
    __syncthreads();
    bool all = true;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) all &= ptx::load_shared(at.votes + 4 * warp) != 0;
    if (all || ptx::load_shared(at.second_time) != 0) return true;
    __syncthreads();
    if (threadIdx.x == 0) ptx::store_shared(at.second_time, 1);
    return false;
  }

  __device__ __forceinline__ void hold_queries() {
#pragma unroll
    for (int i = 0; i < kDepth; ++i) load_q(i, i);
  }
};

template <bool Shared>
struct LoopOf {
  using Type = Pipeline;
};

template <>
struct LoopOf<true> {
  using Type = KeyLoop;
};
