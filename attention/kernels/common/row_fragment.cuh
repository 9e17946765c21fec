// A row of scores in one thread, as tcgen05.ld.32x32b brings it (sm_100a): element i is column i. Nothing is exchanged.
#pragma once

template <int Count>
struct Row {
  static constexpr int kCount = Count, kRows = 1, kStep = 1;
  float at[Count];

  __device__ __forceinline__ float& operator[](int i) { return at[i]; }
  __device__ __forceinline__ const float& operator[](int i) const { return at[i]; }
  __device__ __forceinline__ static constexpr int line(int) { return 0; }
  __device__ __forceinline__ static constexpr int row(int) { return 0; }
  __device__ __forceinline__ static constexpr int column(int i) { return i; }

  // Four chains of three-way maxima, FMNMX3: one chain would be as long as the row.
  __device__ __forceinline__ float largest(int) const {
    float most[4] = {at[0], at[1], at[2], at[3]};
#pragma unroll
    for (int i = 4; i < Count; i += 8)
#pragma unroll
      for (int chain = 0; chain < 4; ++chain) {
        const float next = i + 4 + chain < Count ? at[i + 4 + chain] : at[i + chain];
        most[chain] = fmaxf(fmaxf(most[chain], at[i + chain]), next);
      }
    return fmaxf(fmaxf(most[0], most[1]), fmaxf(most[2], most[3]));
  }

  __device__ __forceinline__ int largest_bits(int line) const { return __float_as_int(largest(line)); }

  __device__ __forceinline__ static float most(float x) { return x; }
  __device__ __forceinline__ static float sum(float x) { return x; }
};
