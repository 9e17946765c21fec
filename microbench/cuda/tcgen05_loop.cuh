// The kernel behind the tcgen05.mma probes: one thread of a block, or of a pair of blocks, multiplies one tile of A by
// one of B, over and over into the same sums. Nothing is loaded in the loop: the tensor cores alone are timed.
//
// M and N are no part of the code: they stand in the instruction descriptor, an argument, so that one cubin serves every
// shape. Before the clock starts D is the product of the first slices; then a trip adds, up to rounding, nothing: slices
// 2 and 3 of A are the negatives of 0 and 1, and each slice of B meets a slice of A and its negative. So sums stay small
// whatever the trip count, and in the end they show that the right elements were multiplied.
#pragma once
#include "ptx/cluster.cuh"
#include "ptx/elect.cuh"
#include "ptx/mbarrier_try.cuh"
#include "ptx/memory.cuh"
#include "ptx/tcgen05.cuh"
#include "timing.cuh"

#define JOIN3(A, B, C) A##B##C
#define JOIN(A, B, C) JOIN3(A, B, C)
#define MULTIPLY(SOURCE) ptx::JOIN(tcgen05_mma_, KIND, SOURCE)
// What a block-scaled kind is told beside the others: where the factors of A and of B lie.
#if SCALED
#define SCALES d + kColumnOfScales, d + kColumnOfScales + 4,
#else
#define SCALES
#endif

constexpr int kThreads = 128, kPerTrip = 8;
constexpr unsigned kRowBytes = 128;  // the width of the 128-byte swizzle: four slices of one instruction, of every type
constexpr unsigned kBRows = 256, kARows = 128, kColumns = 512, kColumnOfA = 256;
// Factors of a block-scaled kind: 32 rows of 16 bytes for 128 rows of A, then for 256 columns of B. All slices share them.
constexpr unsigned kColumnOfScales = 320, kScaleTiles = 3, kScaleBytes = 512;

// Rows of kRowBytes in global memory: of a pair's first block, then of its second. The counts are those of one block.
// `scales`: kScaleTiles tiles a block, where the kind has factors.
struct Operands {
  const unsigned *a, *b, *scales;
  int a_rows, b_rows;
};

struct Rooms {
  unsigned b = (ptx::shared_base() + 1023) & ~1023u, a = b + kBRows * kRowBytes, scales = a + kARows * kRowBytes;
  unsigned slot = scales + kScaleTiles * kScaleBytes, begun = slot + 8, each = begun + 8, done = each + 8;
};

// D = A B of one slice each, or D += A B. A slice of A is a descriptor, or an address of tensor memory.
template <int Group, bool FromTensorMemory>
struct Multiply {
  unsigned d, instruction;
  ptx::u64 a, b;

  __device__ __forceinline__ auto slice_of_a(int i) const {
    if constexpr (FromTensorMemory)
      return d + kColumnOfA + 8 * i;
    else
      return a + ptx::tcgen05_slice(i);
  }

  template <class A>
  __device__ __forceinline__ void operator()(A a_slice, int b_slice, int accumulate) const {
    if constexpr (FromTensorMemory)
      MULTIPLY(_ts)<Group>(d, a_slice, b + ptx::tcgen05_slice(b_slice), instruction, SCALES accumulate);
    else
      MULTIPLY(_ss)<Group>(d, a_slice, b + ptx::tcgen05_slice(b_slice), instruction, SCALES accumulate);
  }
};

template <int Group>
__device__ __forceinline__ void everybody() {
  if constexpr (Group == 2)
    ptx::cluster_sync();
  else
    __syncthreads();
}

// Every block of the group hears of it.
template <int Group>
__device__ __forceinline__ void commit(unsigned bar) {
  if constexpr (Group == 2)
    ptx::tcgen05_commit_multicast<2>(bar, 3);
  else
    ptx::tcgen05_commit(bar);
}

__device__ __forceinline__ void fill_tile(unsigned tile, const unsigned* source, int rows) {
  for (int i = threadIdx.x; i < rows * static_cast<int>(kRowBytes / 4); i += kThreads)
    ptx::store_shared(tile + ptx::swizzle128(4 * i), source[i]);
}

// A row of A to the lane of its sums. Of 64 rows the upper half of each warp's lanes holds none, and gets any.
__device__ __forceinline__ void fill_lanes(unsigned to, const unsigned* source, int rows) {
  const int t = threadIdx.x, row = rows == 64 ? t / 32 * 16 + t % 16 : t;
  unsigned words[kRowBytes / 4];
#pragma unroll
  for (int i = 0; i < static_cast<int>(kRowBytes / 4); ++i) words[i] = source[row * (kRowBytes / 4) + i];
  ptx::tcgen05_st_32x32b(to + (t / 32 * 32 << 16), words);
  ptx::tcgen05_wait_st();
}

// In the pipe of the products that follow it: these find the factors there. Of a pair, each block's own; where these have
// 64 rows each (`folded`), the second and third tile are of the halves of B's columns, for two quarters of the lanes each.
template <int Group>
__device__ __forceinline__ void copy_scales(unsigned to, unsigned from, bool folded) {
  if (Group == 2 && folded) {
    ptx::tcgen05_cp_32x128b<Group>(to, ptx::tcgen05_matrix(from, 0, 128, 0));
    ptx::tcgen05_cp_64x128b_01_23<Group>(to + 4, ptx::tcgen05_matrix(from + kScaleBytes, 0, 128, 0));
    return;
  }
#pragma unroll
  for (unsigned i = 0; i < kScaleTiles; ++i)
    ptx::tcgen05_cp_32x128b<Group>(to + 4 * i, ptx::tcgen05_matrix(from + i * kScaleBytes, 0, 128, 0));
}

__device__ __forceinline__ void add(float& sum, unsigned bits) { sum += __uint_as_float(bits); }
__device__ __forceinline__ void add(int& sum, unsigned bits) { sum += static_cast<int>(bits); }

template <class Sum>
__device__ __forceinline__ Sum sum_of_lane(unsigned d, int columns) {
  Sum sum = 0;
#pragma unroll 1
  for (int column = 0; column < columns; column += 8) {
    unsigned words[8];
    ptx::tcgen05_ld_32x32b(words, d + (threadIdx.x / 32 * 32 << 16) + column);
    ptx::tcgen05_wait_ld();
#pragma unroll
    for (int i = 0; i < 8; ++i) add(sum, words[i]);
  }
  return sum;
}

// One product after the other, as many in flight as the queue of the tensor cores takes.
template <class OneProduct>
__device__ __forceinline__ void stream(const OneProduct& multiply, int trips) {
  int t = 0;
#pragma unroll 1
  do {
#pragma unroll
    for (int i = 0; i < kPerTrip; ++i) multiply(multiply.slice_of_a(i % 4), i / 4 * 2 + i % 2, 1);
  } while (++t < trips);
}

// Each product is committed and waited for, by one try: a loop in the loop would be a second branch. The negative slice
// and the positive one take turns. False where a try was answered no, which nobody has seen.
template <int Group, class OneProduct>
__device__ __forceinline__ bool one_by_one(const OneProduct& multiply, unsigned bar, int trips) {
  auto a = multiply.slice_of_a(2);
  const auto other = a ^ multiply.slice_of_a(0);
  int t = 0;
  bool more;
#pragma unroll 1
  do {
    multiply(a, 0, 1);
    ptx::tcgen05_commit<Group>(bar);
    a ^= other;
    const bool come = ptx::mbarrier_try(bar, t % 2);
    more = (++t < trips) & come;
  } while (more);
  return t == trips;
}

// out: the sum of each lane of D. d_columns: columns of D that a lane holds.
template <int Group, bool FromTensorMemory, bool WaitEach, class Sum>
__device__ __forceinline__ void tcgen05_loop(const Operands& given, unsigned instruction, int d_columns, int trips,
                                             Sum* out, long long* clocks) {
  const Rooms at;
  const unsigned rank = Group == 2 ? __shfl_sync(~0u, ptx::cluster_rank(), 0) : 0;
  const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / 32, 0);
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(at.begun, 1), ptx::mbarrier_init(at.each, 1), ptx::mbarrier_init(at.done, 1);
    ptx::fence_mbarrier_init();
  }
  if (warp == 0) {
    ptx::tcgen05_alloc<Group>(at.slot, kColumns);
    ptx::tcgen05_relinquish<Group>();
  }
  fill_tile(at.a, given.a + rank * given.a_rows * (kRowBytes / 4), given.a_rows);
  fill_tile(at.b, given.b + rank * given.b_rows * (kRowBytes / 4), given.b_rows);
#if SCALED
  constexpr unsigned kWords = kScaleTiles * kScaleBytes / 4;
  for (unsigned i = threadIdx.x; i < kWords; i += kThreads)
    ptx::store_shared(at.scales + 4 * i, given.scales[rank * kWords + i]);
#endif
  ptx::fence_proxy_async();
  __syncthreads();
  const unsigned memory = ptx::load_shared(at.slot);
  if constexpr (FromTensorMemory)
    fill_lanes(memory + kColumnOfA, given.a + rank * given.a_rows * (kRowBytes / 4), given.a_rows);
  ptx::tcgen05_fence_before();
  everybody<Group>();
  ptx::tcgen05_fence_after();

  const Multiply<Group, FromTensorMemory> multiply{memory, instruction, ptx::tcgen05_tile(at.a),
                                                   ptx::tcgen05_tile(at.b)};
  if (warp == 0 && rank == 0 && ptx::elect_one()) {
#if SCALED
    copy_scales<Group>(memory + kColumnOfScales, at.scales, given.a_rows == 64);
#endif
    multiply(multiply.slice_of_a(0), 0, 0);
    commit<Group>(at.begun);
  }
  __syncwarp();
  ptx::mbarrier_wait(at.begun, 0);
  everybody<Group>();

  if (warp == 0) {
    bool in_time = true;
    const long long start = ptx::clock64();
    // In this order: ptxas elects a lane anew for each instruction behind another branch than the election's.
    if (ptx::elect_one() && rank == 0) {
      if constexpr (WaitEach)
        in_time = one_by_one<Group>(multiply, at.each, trips);
      else
        stream(multiply, trips);
      commit<Group>(at.done);
    }
    in_time = __all_sync(~0u, in_time);
    ptx::mbarrier_wait(at.done, 0);
    const long long end = ptx::clock64();
    report(clocks, in_time ? start : 0, end);
  }
  __syncthreads();
  ptx::mbarrier_wait(at.done, 0);
  ptx::tcgen05_fence_after();
  const bool holds_none = Group == 1 && given.a_rows == 64 && threadIdx.x % 32 >= 16;
  const Sum sum = sum_of_lane<Sum>(memory, d_columns);
  out[blockIdx.x * kThreads + threadIdx.x] = holds_none ? Sum(0) : sum;
  everybody<Group>();
  if (warp == 0) ptx::tcgen05_dealloc<Group>(memory, kColumns);
}
