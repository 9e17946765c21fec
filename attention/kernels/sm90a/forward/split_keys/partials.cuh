// What parts of a tile's keys leave in global memory, and how they are brought together (parts.cuh).
#pragma once
#include "packed_rows.cuh"
#include "parts.cuh"
#include "ptx/barrier.cuh"
#include "store.cuh"

// What the parts of a tile leave, in `launch.partials`: of each warp its lanes' registers, 16 bytes side by side. Nobody
// trades words for it: a lane of whoever brings parts together holds the same rows and columns as who left them.
struct Partials {
  using Outputs = RowPair<kValueDim / 2>;
  static constexpr int kWords = kValueDim / 8, kWarps = 4 * kWarpgroups;
  static constexpr int kAtOnce = 4, kRun = 4;  // parts and words that a warp asks for together
  using Run = RowPair<4 * kRun>;
  static constexpr unsigned kMeeting = 1 + 2 * kWarpgroups;  // behind the barriers of turns and of scaled Q

  const Launch& launch;

  // Of a part of a tile: a word of this lane's outputs in a warp, or behind these its softmax.
  __device__ __forceinline__ ptx::u64 word_of(int tile, int number, int warp, int word) const {
    const long long part = static_cast<long long>(tile) * launch.key_splits + number;
    return reinterpret_cast<ptx::u64>(launch.partials) +
           16 * (((part * kWarps + warp) * (kWords + 1) + word) * 32 + threadIdx.x % 32);
  }

  __device__ __forceinline__ int tile_at(const Work& work) const {
    return (work.batch * launch.heads + work.head) * launch.row_tiles + work.row / kTileRows;
  }

  // A tile with all its keys.
  __device__ __forceinline__ Work work_at(int tile) const {
    const int pair = tile / launch.row_tiles, row = tile % launch.row_tiles * kTileRows;
    return work_of(launch, {static_cast<unsigned>(row), static_cast<unsigned>(pair % launch.heads),
                            static_cast<unsigned>(pair / launch.heads), 0});
  }

  // By a warp of consumers, which may have rows of nobody alone.
  __device__ __forceinline__ void leave(const Part& part, int warp, bool any, const Outputs& o,
                                        const Softmax<2>& state) const {
    const int tile = tile_at(part);
    const ptx::u64 to = word_of(tile, part.number, warp, 0);
    if (any) {
#pragma unroll
      for (int i = 0; i < kWords; ++i) ptx::store4(to + 512 * i, o[4 * i], o[4 * i + 1], o[4 * i + 2], o[4 * i + 3]);
      ptx::store4(to + 512 * kWords, state.most[0], state.most[1], Outputs::sum(state.sum[0]),
                  Outputs::sum(state.sum[1]));
    }
    if (kRanges && part.number == 0) {
      const int row = part.row + 16 * warp + threadIdx.x % 32 / 4;
      if constexpr (kPackGqa)
        store_none(launch, part, row, threadIdx.x % 32, false);
      else
        store_unused(launch, part, row, threadIdx.x % 32);
    }
    __syncwarp();
    if (threadIdx.x % 32 == 0) ptx::count_ordered(launch.arrivals + tile * launch.key_splits + part.number);
  }

  // This block's share of all rows, by all of its consumers. They are dealt in runs of as many words as a warp's share has:
  // dealt word by word a share lay across rows of two warps, and took as long as two.
  __device__ __forceinline__ void bring_together(int warp) const {
    const int words = launch.tiles * kWarps * kWords, warps = gridDim.x * kWarps;
    const int run = words <= warps ? 1 : words <= 2 * warps ? 2 : kRun;
    const int runs = launch.tiles * kWarps * runs_of(run);
    const int begin = share(runs, blockIdx.x, gridDim.x), end = share(runs, blockIdx.x + 1, gridDim.x);
    const int first = rows_at(begin, run) / kWarps * launch.key_splits;
    const int beyond = (rows_at(end - 1, run) / kWarps + 1) * launch.key_splits;
#pragma unroll 1
    for (int part = first + threadIdx.x - 128; part < beyond; part += kConsumerThreads) await(part);
    ptx::barrier_sync(kMeeting, kConsumerThreads + 32);
    const int last = begin + share(end - begin, warp + 1, kWarps);
#pragma unroll 1
    for (int at = begin + share(end - begin, warp, kWarps); at < last; ++at) {
      const int rows = rows_at(at, run), word = (at - rows * runs_of(run)) * run;
      add(rows / kWarps, rows % kWarps, word, min(run, kWords - word));
    }
  }

  // Runs of a warp's rows, and whose rows one is of: by three constants, as a division by what is none takes 100 cycles.
  __device__ __forceinline__ static int runs_of(int run) {
    return run == 1 ? kWords : run == 2 ? (kWords + 1) / 2 : (kWords + kRun - 1) / kRun;
  }
  __device__ __forceinline__ static int rows_at(int at, int run) {
    return run == 1 ? at / kWords : run == 2 ? at / ((kWords + 1) / 2) : at / ((kWords + kRun - 1) / kRun);
  }

  __device__ __forceinline__ static int share(unsigned all, unsigned number, unsigned count) {
    return all * number / count;
  }

  __device__ __forceinline__ void await(int part) const {
    const Work work = work_at(part / launch.key_splits);
    if (work.sees_nothing() || part % launch.key_splits >= Part::parts(launch, work)) return;
    while (ptx::load_acquire(launch.arrivals + part) % kTaken != kWarps) {
    }
  }

  // By a warp beside the consumers, which would wait for the count: when the last block waits for nobody any more, counters
  // are left as the next launch on this stream expects them.
  __device__ __forceinline__ void put_all_back() const {
    ptx::barrier_sync(kMeeting, kConsumerThreads + 32);
    const int lane = threadIdx.x % 32;
    int before = 0;
    if (lane == 0) before = ptx::count_ordered(launch.counters + 1);
    if (__shfl_sync(~0u, before, 0) != gridDim.x - 1) return;
    __syncwarp();
#pragma unroll 1
    for (int at = lane; at <= numbers_of(launch); at += 32) launch.arrivals[at] = 0;
    if (lane < 2) launch.counters[lane] = 0;
  }

  // Some words of a warp's rows. So many parts are asked for at once: all of it waits for the L2 once.
  __device__ __forceinline__ void add(int tile, int warp, int word, int run) const {
    const Work work = work_at(tile);
    const int parts = Part::parts(launch, work);
    if (work.sees_nothing() || work.query_of(work.row + 16 * warp) >= work.queries) return;
    Softmax<2> all{{minus_infinity(), minus_infinity()}, {0.f, 0.f}, {0.f, 0.f}};
    Run o{};
    const ptx::u64 stride = 512ull * kWarps * (kWords + 1);
    ptx::u64 from = word_of(tile, 0, warp, word);
    const ptx::u64 to_state = 512 * (kWords - word);
#pragma unroll 1
    for (int first = 0; first < parts; first += kAtOnce, from += kAtOnce * stride) {
      ptx::vec4 states[kAtOnce], some[kAtOnce][kRun];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        states[i] = words(minus_infinity(), minus_infinity(), 0.f, 0.f);
        if (first + i < parts) states[i] = ptx::load4_cg(from + i * stride + to_state);
#pragma unroll
        for (int j = 0; j < kRun; ++j) {
          some[i][j] = {0, 0, 0, 0};
          if (first + i < parts && j < run) some[i][j] = ptx::load4_cg(from + i * stride + 512 * j);
        }
      }
      const ptx::vec4 before = words(all.most[0], all.most[1], 0.f, 0.f);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        all.most[0] = fmaxf(all.most[0], __uint_as_float(states[i].x));
        all.most[1] = fmaxf(all.most[1], __uint_as_float(states[i].y));
      }
      go_back(all, launch.scale_log2);
      float weights[2];
      weigh(before, all, weights);
      rescale(o, weights);
      all.sum[0] *= weights[0];
      all.sum[1] *= weights[1];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        weigh(states[i], all, weights);
        all.sum[0] += weights[0] * __uint_as_float(states[i].z);
        all.sum[1] += weights[1] * __uint_as_float(states[i].w);
#pragma unroll
        for (int j = 0; j < kRun; ++j) {
          o[4 * j] += weights[0] * __uint_as_float(some[i][j].x);
          o[4 * j + 1] += weights[0] * __uint_as_float(some[i][j].y);
          o[4 * j + 2] += weights[1] * __uint_as_float(some[i][j].z);
          o[4 * j + 3] += weights[1] * __uint_as_float(some[i][j].w);
        }
      }
    }
    store(work, work.row + 16 * warp, word, run, o, all);
  }

  // What p that is counted from the largest scores of `some` is worth, counted from those of `all`. As p was: by rounded
  // offsets, or of far rows by scores (online_softmax.cuh).
  __device__ __forceinline__ void weigh(const ptx::vec4& some, const Softmax<2>& all, float (&weights)[2]) const {
    Softmax<2> mine{{__uint_as_float(some.x), __uint_as_float(some.y)}};
    go_back(mine, launch.scale_log2);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float near = mine.offset[h] - all.offset[h], far = (mine.most[h] - all.most[h]) * launch.scale_log2;
      weights[h] = mine.most[h] == minus_infinity() ? 0.f : ptx::ex2(is_far(all.offset[h]) ? far : near);
    }
  }

  // As store_rows, which has all columns of a row.
  __device__ __forceinline__ void store(const Work& work, int first, int word, int run, const Run& o,
                                        const Softmax<2>& all) const {
    const int lane = threadIdx.x % 32, held = 8 * word + lane % 4 * 2, column = held - lead_of_outputs(launch, work);
    const float sink = kLogit && !kPackGqa ? logit(launch, work) : 0.f;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      Finish finished = finish(all.sum[h], all.offset[h], sink);
      const int row = first + lane / 4 + 8 * h;
      bool inside = row < work.queries;
      ptx::u64 out = row_address(launch, work, row) + 2 * column;
      if constexpr (kPackGqa) {
        const OfRow mine(work, row);
        finished = mine.finished(launch, all.sum[h], all.offset[h]);
        inside = mine.is_used();
        out = mine.address(launch) + 2 * column;
      }
#pragma unroll
      for (int j = 0; j < kRun; ++j)
        ptx::store_if(inside && j < run && is_within(column + 8 * j, out_columns(launch)), out + 16 * j,
                      pack_pair(o[4 * j + 2 * h] * finished.inverse, o[4 * j + 2 * h + 1] * finished.inverse));
      ptx::store_if(inside && held == 0, reinterpret_cast<ptx::u64>(lse_at(work, row)), __float_as_uint(finished.lse));
    }
  }

  __device__ __forceinline__ float* lse_at(const Work& work, int row) const {
    if constexpr (kPackGqa)
      return OfRow(work, row).lse(launch);
    else
      return lse_of(launch, work, row);
  }

  __device__ __forceinline__ static ptx::vec4 words(float x, float y, float z, float w) {
    return {__float_as_uint(x), __float_as_uint(y), __float_as_uint(z), __float_as_uint(w)};
  }
};
