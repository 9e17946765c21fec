// A loop that the compiler writes out whatever it thinks of its length.
//
// `#pragma unroll` is a wish: NVRTC 12.9 and 13.0 kept 13 to 16 products of Q K^T in a loop of two where Q is read from
// shared memory, with 27 instructions for each 16 columns. Written out, calls of head dims 208 to 256 took 14 to 36 %
// less time (H200, unrolled_products.csv).
#pragma once

// body(0), body(1) ... body(Count - 1), each with a constant.
template <int Count, int From = 0, class Body>
__device__ __forceinline__ void unrolled(const Body& body) {
  if constexpr (From < Count) {
    body(From);
    unrolled<Count, From + 1>(body);
  }
}
