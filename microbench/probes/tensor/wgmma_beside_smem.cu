// A warpgroup multiplies, whose operands come from shared memory, while another one reads or writes other places there.
#include "wgmma_beside.cuh"

constexpr unsigned kStride = 16 * 128;  // 16 bytes a thread: no bank conflict, and 128 bytes a clock alone
// ptxas drops a store that the next one overwrites, but loads one word as often as it is told.
constexpr int kPlaces = LOADS ? 1 : ACCESSES;

// Of the second warpgroup.
struct Copies {
  unsigned mine;
  ptx::vec4 value, seen;  // a sum for each word of a load: the next XOR waits for no other one

  // What is loaded in a trip comes to nothing by XOR, an even number of times; the sum says whose words they are. What
  // is stored differs from what was there before.
  __device__ __forceinline__ explicit Copies(unsigned place) : mine(place + 16 * (threadIdx.x % 128)), seen{} {
    const unsigned word = 4 * threadIdx.x * 2654435761u;
    value = {word, word + 1, word + 2, word + 5};
    if (threadIdx.x < 128) return;
#pragma unroll
    for (int i = 0; i < kPlaces; ++i) ptx::store_shared4(mine + i * kStride, value);
    if (LOADS) seen = ptx::load_shared4(mine);
    value.x *= 3;
    settle();
    ptx::settle(value.x);
  }

  __device__ __forceinline__ void add(unsigned place) {
    const ptx::vec4 v = ptx::load_shared4(place);
    seen.x ^= v.x, seen.y ^= v.y, seen.z ^= v.z, seen.w ^= v.w;
  }

  template <int Count>
  __device__ __forceinline__ void compute() {
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      if (LOADS)
        add(mine);
      else
        ptx::store_shared4(mine + i * kStride, value);
    }
  }

  // Of stores nothing arrives; but where this warpgroup has nothing to settle, ptxas unrolls the other one's loop.
  __device__ __forceinline__ void settle() const {
    if (LOADS)
      ptx::settle(seen.x, seen.y, seen.z, seen.w);
    else
      ptx::settle(mine);
  }

  // The four words by XOR; of stores those of every place, summed.
  __device__ __forceinline__ unsigned sum() {
    if (LOADS || threadIdx.x < 128) return seen.x ^ seen.y ^ seen.z ^ seen.w;
    unsigned total = 0;
#pragma unroll 1
    for (int i = 0; i < kPlaces; ++i) {
      seen = {};
      add(mine + i * kStride);
      total += seen.x ^ seen.y ^ seen.z ^ seen.w;
    }
    return total;
  }
};

// a: 128 rows, of which the first 64 are multiplied; b: N rows; both of 64 elements. sums: a float a thread, ends: a word.
// Dynamic shared memory: both tiles, the places, and 1024 bytes to align them.
extern "C" __global__ void __launch_bounds__(256, 1)
    wgmma_beside_smem(const unsigned* a, const unsigned* b, int product_trips, int other_trips, float* sums,
                      unsigned* ends, long long* clocks) {
  const bool multiplies = in_first_warpgroup();
  const unsigned tiles = (ptx::shared_base() + 1023) & ~1023u;
  Wgmma<N_COLUMNS, A_IN_REGISTERS, true> products(a, b);
  Copies copies(tiles + (N_COLUMNS + A_ROWS) * ROW_BYTES);
  time_beside<Where::other, ACCESSES>(multiplies, products, copies, product_trips, other_trips, sums, ends, clocks);
}
