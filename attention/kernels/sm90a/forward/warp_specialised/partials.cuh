// There are no parts of a tile's keys here, and nothing to be brought together.
#pragma once
#include "online_softmax.cuh"
#include "parts.cuh"

struct Partials {
  const Launch& launch;

  template <class Outputs>
  __device__ __forceinline__ void leave(const Part&, int, bool, const Outputs&, const Softmax<2>&) const {}
  __device__ __forceinline__ void bring_together(int) const {}
  __device__ __forceinline__ void put_all_back() const {}
};
