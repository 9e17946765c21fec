// Keys of a tile of rows dealt to several blocks, where the tiles alone would leave SMs idle (the split of Flash-Decoding).
//
// A number of the schedule is a part of a tile's keys. Who has worked through one leaves its rows in global memory:
// outputs that no sum divides yet, and their softmax. When all numbers are taken blocks share the rows of all tiles
// evenly, and each brings the parts of its rows together, in their order: the same bits, whoever it is. The last block of
// a tile alone would read all of its parts, of eight half a megabyte, which an SM's port takes 4.5 us for (H100).
//
// No block waits for one that has not begun, which may wait for its SM: numbers that nobody has taken others take.
#pragma once
#include "ptx/memory.cuh"
#include "schedule.cuh"

static_assert(kKeyParts && kDynamic && !kPair && !kCrosses && !kDealt);

// Of each number, in `launch.arrivals`: how many warps have left their rows, and whether somebody has taken it, which is
// counted of those that blocks begin with alone. Behind them, how many blocks have begun.
constexpr int kTaken = 1 << 16;
constexpr unsigned kLost = 1u << 31;  // in the message of a number: the one before was taken by another block

// The keys of a number's rows that are its part of `count`, each of a tile of keys or more. Of rows that see nothing there
// is one part.
struct Part : Work {
  int number, count;

  __device__ __forceinline__ static int parts(const Launch& launch, const Work& work) {
    return max(1, min(launch.key_splits, work.last - work.first));
  }

  __device__ __forceinline__ static Part of(const Launch& launch, ptx::vec4 tile) {
    tile.z &= ~kLost;
    const int number = tile.z % launch.key_splits;
    tile.z /= launch.key_splits;
    Part part{work_of(launch, tile), number, 1};
    part.count = parts(launch, part);
    const int tiles = part.last - part.first, first = part.first;
    part.first = first + tiles * number / part.count;
    part.last = number < part.count ? first + tiles * (number + 1) / part.count : part.first;
    return part;
  }

  // Whether there is such a part, and this block took it: by the message of the next number.
  __device__ __forceinline__ bool is_left(const ptx::vec4& next) const { return number < count && !(next.z & kLost); }
};

__device__ __forceinline__ int numbers_of(const Launch& launch) { return launch.tiles * launch.key_splits; }

// The numbers that a block takes, by its producer. It begins with that of its own place, and hears whether that was still
// to be had while it is at work: asked first, the counter would be waited for.
struct Takes {
  bool lost = false;
  int before;

  __device__ __forceinline__ explicit Takes(const Launch& launch)
      : before(atomicAdd(launch.arrivals + blockIdx.x, kTaken)) {
    atomicAdd(launch.arrivals + numbers_of(launch), 1);
  }

  // Row, head and batch of a number, whose part takes turns at the place of the batch.
  __device__ __forceinline__ ptx::vec4 told(const Launch& launch, int number) const {
    ptx::vec4 tile = divided(launch, number / launch.key_splits);
    tile.z = (tile.z * launch.key_splits + number % launch.key_splits) | (lost ? kLost : 0);
    return tile;
  }

  __device__ __forceinline__ int next(const Launch& launch) {
    lost = before >= kTaken;
    before = 0;
    const int numbers = numbers_of(launch), number = take_tile(launch);
    if (number < numbers || ptx::load_acquire(launch.arrivals + numbers) == launch.blocks) return number;
#pragma unroll 1
    for (int first = 0; first < launch.blocks; ++first)
      if (atomicAdd(launch.arrivals + first, kTaken) < kTaken) return first;
    return numbers;
  }
};
