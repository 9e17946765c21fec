// Keys of a tile of rows, dealt to several blocks where the tiles alone would leave SMs idle.
//
// A block keeps outputs that no sum divides yet, and its rows' maxima and sums. It leaves them in global memory and
// counts itself; who arrives last adds up what all parts left, in the order of the parts: the same bits, whoever it is.
// A thread's registers lie beside those of its block's other threads, 16 bytes each, and the same thread of the last
// block holds the same rows and columns: nothing here knows how a fragment lies.
//
// The last block and no second kernel: that would wait for the whole grid, as nothing before Hopper launches it early,
// and a block waits for its own parts alone. None waits for another to run: a grid may be larger than the GPU.
#pragma once
#include "online_softmax.cuh"
#include "strided.cuh"

// A block's tile of rows, and which of its parts. From a shuffle that the compiler does not move, as in work_again.
struct Part {
  int tile, number;

  __device__ __forceinline__ explicit Part(const Launch& launch)
      : tile(__shfl_sync(~0u, static_cast<int>(blockIdx.x), 0)), number(0) {
    if constexpr (kKeySplits) {
      number = tile % launch.key_splits;
      tile /= launch.key_splits;
    }
  }

  // The tile with all its keys.
  __device__ __forceinline__ Work work(const Launch& launch) const { return work_of(launch, divided(launch, tile)); }

  // How many parts there are, each with a tile of keys or more; one where rows see nothing.
  __device__ __forceinline__ static int count(const Launch& launch, const Work& work) {
    return kKeySplits ? max(1, min(launch.key_splits, work.last - work.first)) : 1;
  }

  // Leave in `work` the keys of this part; whether it is one of those that there are.
  __device__ __forceinline__ bool narrow(const Launch& launch, Work& work) const {
    if constexpr (!kKeySplits) return true;
    const int parts = count(launch, work), tiles = work.last - work.first, first = work.first;
    work.first = first + tiles * number / parts;
    work.last = first + tiles * (number + 1) / parts;
    return number < parts;
  }
};

// A block's outputs and softmax, in `launch.partials`.
template <class Rows>
struct Gather {
  static constexpr int kOutputs = sizeof(Rows::o[0]) / 16, kWords = kPanels * (kOutputs + 1);

  Rows& rows;
  const Launch& launch;
  const Part part;
  const int parts;

  __device__ __forceinline__ explicit Gather(Rows& rows)
      : rows(rows), launch(rows.launch), part(launch), parts(Part::count(launch, part.work(launch))) {}

  // Where part `number` has this thread's words of a panel: its softmax, and behind it its outputs.
  __device__ __forceinline__ ptx::u64 at(int number, int panel, int word) const {
    const long long block = static_cast<long long>(part.tile) * launch.key_splits + number;
    return reinterpret_cast<ptx::u64>(launch.partials) +
           16 * ((block * kWords + panel * (kOutputs + 1) + word) * kThreads + threadIdx.x);
  }

  __device__ __forceinline__ void leave() const {
#pragma unroll
    for (int m = 0; m < kPanels; ++m) {
      const Softmax<2>& state = rows.state[m];
      ptx::store4(at(part.number, m, 0), words(state.most[0], state.most[1], state.sum[0], state.sum[1]));
#pragma unroll
      for (int i = 0; i < kOutputs; ++i) {
        const auto& o = rows.o[m];
        ptx::store4(at(part.number, m, 1 + i), words(o[4 * i], o[4 * i + 1], o[4 * i + 2], o[4 * i + 3]));
      }
    }
  }

  // Whether this block is the last one of its tile. One thread's count serves all: the barrier brings their stores
  // before the first, and their loads behind the second.
  __device__ __forceinline__ bool arrive() const {
    const unsigned room = rows.at.k;  // no longer read
    __syncthreads();
    if (threadIdx.x == 0) {
      int* counter = launch.arrivals + part.tile;
      const bool last = ptx::count_ordered(counter) == parts - 1;
      if (last) *counter = 0;  // as the next launch on this stream expects it
      ptx::store_shared(room, last);
    }
    __syncthreads();
    return ptx::load_shared(room);
  }

  // The softmax of all parts' keys.
  __device__ __forceinline__ void add_up() const {
#pragma unroll
    for (int m = 0; m < kPanels; ++m) {
      Softmax<2>& state = rows.state[m];
      state.most[0] = state.most[1] = minus_infinity();
#pragma unroll 1
      for (int number = 0; number < parts; ++number) {
        const ptx::vec4 left = ptx::load4_cg(at(number, m, 0));
        state.most[0] = fmaxf(state.most[0], __uint_as_float(left.x));
        state.most[1] = fmaxf(state.most[1], __uint_as_float(left.y));
      }
      state.sum[0] = state.sum[1] = 0.f;
      go_back(state, launch.scale_log2);
      zero(rows.o[m]);
#pragma unroll 1
      for (int number = 0; number < parts; ++number) add(m, number);
    }
  }

  // As a block's own outputs are rescaled where its maximum grows (raise_maxima).
  __device__ __forceinline__ void add(int m, int number) const {
    Softmax<2>& state = rows.state[m];
    const ptx::vec4 left = ptx::load4_cg(at(number, m, 0));
    const float most[2] = {__uint_as_float(left.x), __uint_as_float(left.y)};
    const float sum[2] = {__uint_as_float(left.z), __uint_as_float(left.w)};
    float weight[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const bool far = is_far(state.offset[h]);
      const float beyond = most[h] - (far ? state.most[h] : 0.f);
      weight[h] = ptx::ex2(__fmaf_rn(beyond, launch.scale_log2, far ? 0.f : -state.offset[h]));
      state.sum[h] += weight[h] * sum[h];
    }
    auto& o = rows.o[m];
#pragma unroll
    for (int i = 0; i < kOutputs; ++i) {
      const ptx::vec4 some = ptx::load4_cg(at(number, m, 1 + i));
      o[4 * i] += weight[o.line(4 * i)] * __uint_as_float(some.x);
      o[4 * i + 1] += weight[o.line(4 * i + 1)] * __uint_as_float(some.y);
      o[4 * i + 2] += weight[o.line(4 * i + 2)] * __uint_as_float(some.z);
      o[4 * i + 3] += weight[o.line(4 * i + 3)] * __uint_as_float(some.w);
    }
  }

  __device__ __forceinline__ static ptx::vec4 words(float x, float y, float z, float w) {
    return {__float_as_uint(x), __float_as_uint(y), __float_as_uint(z), __float_as_uint(w)};
  }
};

// Bring a block's outputs together with those of its tile's other parts; whether this block is who stores them.
template <class Rows>
__device__ __forceinline__ bool gather(Rows& rows) {
  if constexpr (!kKeySplits) return true;
  const Gather<Rows> all(rows);
  if (all.parts == 1) return true;
  all.leave();
  if (!all.arrive()) return false;
  all.add_up();
  return true;
}
