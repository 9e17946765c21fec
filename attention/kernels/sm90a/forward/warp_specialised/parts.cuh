// What a number of the schedule stands for here: a tile of rows with all its keys, which no other block has a part of.
#pragma once
#include "schedule.cuh"

static_assert(!kKeyParts);

struct Part : Work {
  __device__ __forceinline__ static Part of(const Launch& launch, const ptx::vec4& tile) {
    return {work_of(launch, tile)};
  }
  __device__ __forceinline__ static bool is_left(const ptx::vec4&) { return true; }
};

// The numbers that a block takes, by its producer.
struct Takes {
  __device__ __forceinline__ explicit Takes(const Launch&) {}
  __device__ __forceinline__ static ptx::vec4 told(const Launch& launch, int number) { return divided(launch, number); }
  __device__ __forceinline__ static int next(const Launch& launch) { return take_tile(launch); }
};
