// The software pipeline of a warp.
//
// A step issues the scores of one slice of keys, then p * V of the slice before it, and the softmax of the first runs
// on the other units under the second. Keys run downwards. Tiles of keys come in by cp.async one tile ahead, with one
// barrier a tile.
#pragma once
#include "load.cuh"
#include "rows.cuh"
#include "unrolled.cuh"

struct Pipeline : Rows {
  const Loader<KeyRow> loader;
  const unsigned short *k_from, *v_from;  // the next tile to load
  unsigned k_now, v_now;                  // stages of the tile at hand
  bool pending;                           // whether p holds a slice
  int k_lead = 0, v_lead = 0;             // columns before the first of a row (lead.cuh)

  __device__ __forceinline__ explicit Pipeline(const Launch& launch) : Rows(launch) {}

  __device__ __forceinline__ auto v_loader() const {
    if constexpr (kUnlike)
      return Loader<ValueRow>();
    else
      return loader;
  }

  // One slice that every row sees, and p * V of the slice before it.
  __device__ __forceinline__ void step(const Work& work, int key, unsigned k, unsigned v, unsigned k_next, bool primed,
                                       bool prime) {
    constexpr int kScores = kPanels * kSlice / 2;
    float sums[kPanels][2];
    if (!primed)
#pragma unroll
      for (int i = 0; i < AHEAD; ++i) fetch(i, k, v, k_next);
    if (!kQInRegisters) load_q(0, 0);
    clear_scores();
    const auto take_k = [&](int i) {
      if (!kQInRegisters && i % kBlocks == 0 && i / kBlocks + 1 < kDepth)
        load_q(i / kBlocks + 1, (i / kBlocks + 1) % 2);
      fetch(i + AHEAD, k, v, k_next);
      multiply_k(i);
    };
    if constexpr (kQInRegisters || kDepth <= 12) {  // whose builds were timed
#pragma unroll
      for (int i = 0; i < kKFragments; ++i) take_k(i);
    } else {
      unrolled<kKFragments>(take_k);
    }
    if constexpr (kChanged) adjust<false>(work, key);
    if (FENCE) __syncwarp();
#pragma unroll
    for (int i = 0; i < kVFragments; ++i) {
      const int ahead = kKFragments + i + AHEAD;
      if (FENCE > 1 && i && i % FENCE == 0) __syncwarp();
      if (ahead < kFragments || prime) fetch(ahead, k, v, k_next);
      multiply_v(i);
      // The first products hide the latency of the scores, the last ones that of the vote.
      constexpr int kSpan = kVFragments > 2 ? kVFragments - 2 : 1;
      exponentials_between(i < 1 ? 0 : (i - 1) * kScores / kSpan,
                           i == kVFragments - 1 ? kScores : (i < 1 ? 0 : i * kScores / kSpan), sums);
    }
    join(sums);
  }

  // Whether no query uses a row of this warp: it brings its part of K and V alone.
  __device__ __forceinline__ bool is_idle(const Work& work) const {
    return kIdleWarps && work.query_of(work.row + warp_row()) >= work.queries;
  }

  // Whether a row of this warp sees one of a slice of keys, where heads share rows.
  __device__ __forceinline__ bool is_seen(const Work& work, int key) const {
    const int first = work.query_of(work.row + warp_row()), last = work.query_of(work.row + warp_row() + kWarpRows - 1);
    return key < work.keys && (!kCausal || key <= last + work.right) && (!kWindow || key + kSlice > first + work.left);
  }

  // Likewise where some row may not see some key, or where one is far.
  __device__ __forceinline__ void masked_step(const Work& work, int key, unsigned k, unsigned v, bool far) {
    const int row = work.row + warp_row();
    bool seen = key < work.keys && (!kCausal || key < row + kWarpRows + work.right) &&
                (!kWindow || key + kSlice > row + work.left);
    if constexpr (kPackGqa) seen = is_seen(work, key);
    if (seen) multiply_scores(k);
    if (pending) multiply_values(v);
    pending = seen;
    if (!seen) return;
    adjust<true>(work, key);
    raise(far);
  }

  // After a tile of keys, `left` before the last: the next one, under way since, takes its place.
  __device__ __forceinline__ void turn(int left) {
    v_now = next_v(v_now);
    k_now = next_k(k_now);
    if (left == 0) return;
    ptx::cp_async_wait<0>();
    __syncthreads();
  }

  __device__ __forceinline__ void load_next_k() {
    loader.load<true, kKeys>(next_k(k_now), k_from, launch.k_row, 0, launch.head_dim, k_lead);
    k_from -= kKeys * launch.k_row;
  }

  __device__ __forceinline__ void load_next_v() {
    v_loader().load<true, kKeys>(next_v(v_now), v_from, launch.v_row, 0, out_columns(launch), v_lead);
    v_from -= kKeys * launch.v_row;
    ptx::cp_async_commit();
  }

  // Where V of the slice above slice i lies: its p * V goes with the scores of slice i.
  __device__ __forceinline__ unsigned v_above(int i) const {
    return i == kSlices - 1 ? v_before() : v_now + (i + 1) * kSlice * ValueRow::kBytes;
  }

  __device__ __forceinline__ void seen_tile(const Work& work, int left) {
    const bool more = left > 0;
    pending = !kIdleWarps || !is_idle(work);
#pragma unroll
    for (int i = kSlices - 1; i >= 0; --i) {
      if (i == kSlices - 1 && more) load_next_k();
      if (i == (kSlices > 1 ? kSlices - 2 : 0) && more) load_next_v();
      if constexpr (kIdleWarps)
        if (is_idle(work)) continue;
      const unsigned k = k_now + i * kSlice * KeyRow::kBytes;
      step(work, (work.first + left) * kKeys + i * kSlice, k, v_above(i), k - kSlice * KeyRow::kBytes,
           kPrimes && i < kSlices - 1, kPrimes && i > 0);
    }
  }

  __device__ __forceinline__ void masked_tile(const Work& work, int left) {
    const bool far = ptx::load_shared(at.second_time) != 0;
    if (left > 0) {
      load_next_k();
      load_next_v();
    }
#pragma unroll 1
    for (int i = kSlices - 1; i >= 0; --i)
      masked_step(work, (work.first + left) * kKeys + i * kSlice, k_now + i * kSlice * KeyRow::kBytes, v_above(i), far);
  }

  __device__ __forceinline__ unsigned next_k(unsigned stage) const { return stage ^ at.k ^ (at.k + kKBytes); }
  __device__ __forceinline__ unsigned next_v(unsigned stage) const {
    return stage == at.v + (kVStages - 1) * kVBytes ? at.v : stage + kVBytes;
  }

  // The stage of the tile above, whose last slice is under way.
  __device__ __forceinline__ unsigned v_before() const {
    return v_now == at.v ? at.v + (kVStages - 1) * kVBytes : v_now - kVBytes;
  }

  __device__ __forceinline__ const unsigned short* first_row(const Work& work, const void* base, long long batch,
                                                             long long head, long long row, int column) const {
    return static_cast<const unsigned short*>(base) + work.plane * batch + head + row + column;
  }

  __device__ __forceinline__ void find_leads(int kv_head) {
    k_lead = lead_of_keys(launch, kv_head);
    v_lead = lead_of_values(launch, kv_head);
  }

  // Q of heads that share rows.
  __device__ __forceinline__ void load_group(const Work& work) const {
    constexpr int kPass = kThreads / KeyRow::kGroup, kCount = kPass < kTileRows ? kPass : kTileRows;
    const int rows = work.queries * work.group - work.row;
#pragma unroll
    for (int pass = 0; pass < kTileRows; pass += kPass) {
      const int row = work.row + loader.row + pass;
      const unsigned short* from =
          first_row(work, launch.q, launch.q_batch, work.head_of(row) * launch.q_head,
                    (work.query_start + work.query_of(row)) * launch.q_row, loader.column - k_lead);
      loader.load<false, kCount>(at.q + pass * KeyRow::kBytes, from, 0, rows - pass, launch.head_dim, k_lead);
    }
  }

  // Q, and the last tile of keys, whose end may lie outside of the sequence.
  __device__ __forceinline__ void begin(const Work& work) {
    const int kv_head = kv_head_of(launch, work), tile = work.last - 1;
    find_leads(kv_head);
    const unsigned short* q_from =
        first_row(work, launch.q, launch.q_batch, work.head * launch.q_head,
                  (work.query_start + work.row + loader.row) * launch.q_row, loader.column - k_lead);
    const int key = work.key_start + tile * kKeys + loader.row;
    const int v_key = kUnlike ? key - loader.row + v_loader().row : key;
    k_from =
        first_row(work, launch.k, launch.k_batch, kv_head * launch.k_head, key * launch.k_row, loader.column - k_lead);
    v_from = first_row(work, launch.v, launch.v_batch, kv_head * launch.v_head, v_key * launch.v_row,
                       v_loader().column - v_lead);
    k_now = at.k + kKBytes;
    v_now = at.v;
    pending = false;
    if constexpr (kPackGqa)
      load_group(work);
    else
      loader.load<false, kTileRows>(at.q, q_from, launch.q_row, work.queries - work.row, launch.head_dim, k_lead);
    loader.load<false, kKeys>(k_now, k_from, launch.k_row, work.keys - tile * kKeys, launch.head_dim, k_lead);
    v_loader().load<false, kKeys>(v_now, v_from, launch.v_row, work.keys - tile * kKeys, out_columns(launch), v_lead);
    k_from -= kKeys * launch.k_row;
    v_from -= kKeys * launch.v_row;
    ptx::cp_async_commit();
    clear();
    ptx::cp_async_wait<0>();
    __syncthreads();
    if constexpr (kQInRegisters) {
#pragma unroll
      for (int i = 0; i < kDepth; ++i) load_q(i, i);
      __syncthreads();
    }
  }

  // After all keys: whether every sum of the block is finite, or the rows have had their second time.
  __device__ __forceinline__ bool settled() const {
    const bool mine = __all_sync(~0u, finite());
    if (lane() == 0) ptx::store_shared(at.votes + threadIdx.x / 32 * 4, mine);
    __syncthreads();
    bool all = true;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) all &= ptx::load_shared(at.votes + 4 * warp) != 0;
    all |= ptx::load_shared(at.second_time) != 0;
    __syncthreads();
    if (!all && threadIdx.x == 0) ptx::store_shared(at.second_time, 1);
    return all;
  }

  // False if it must be run again, which then takes all slices for masked ones, and all rows for far ones.
  __device__ __forceinline__ bool run(const Work& work) {
    begin(work);
    // Tiles below `whole` are seen in full by every row, and every row has seen a key before.
    int whole = kCausal ? (work.row + work.right) / kKeys : work.last - 1;
    if constexpr (kPackGqa && kCausal) whole = (work.query_of(work.row) + work.right) / kKeys;
    if (kHiding || ptx::load_shared(at.second_time)) whole = 0;
    int left = work.last - 1 - work.first, lowest = max(0, min(whole - work.first, left));
    for (; left >= lowest; --left) {
      masked_tile(work, left);
      turn(left);
    }
    lowest = kWindow ? max(0, (work.row + kTileRows - 1 + work.left + kKeys - 1) / kKeys - work.first) : 0;
    if constexpr (kPackGqa && kWindow) {
      const int last = work.query_of(work.row + kTileRows - 1);
      lowest = max(0, (last + work.left + kKeys - 1) / kKeys - work.first);
    }
    for (; left >= lowest; --left) {
      seen_tile(work, left);
      turn(left);
    }
    if constexpr (kWindow)
      for (; left >= 0; --left) {
        masked_tile(work, left);
        turn(left);
      }
    if (pending) multiply_values(v_before());
    // Parts of a row's keys are brought together in the units that each has.
    const float scale = !kKeySplits && ptx::load_shared(at.second_time) ? launch.scale_log2 : 1.f;
#pragma unroll
    for (int m = 0; m < kPanels; ++m) scale_offsets(state[m], scale);
    return settled();
  }
};
