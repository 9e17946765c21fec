// Small instructions, each on what a lane holds: x, y and z are three words of input, and row i of `out` is the result
// of instruction i, for 32 lanes. The build names the instructions.
#include "ptx/bits.cuh"
#include "ptx/convert.cuh"
#include "ptx/math.cuh"
#include "ptx/math_sm100.cuh"
#include "ptx/warp.cuh"

struct Rows {
  unsigned* out;
  int row;

  __device__ __forceinline__ void put(unsigned word) { out[row++ * 32] = word; }
  __device__ __forceinline__ void put(int word) { put(static_cast<unsigned>(word)); }
  __device__ __forceinline__ void put(unsigned short word) { put(static_cast<unsigned>(word)); }
  __device__ __forceinline__ void put(float value) { put(__float_as_uint(value)); }
  __device__ __forceinline__ void put(float2 pair) {
    put(pair.x);
    put(pair.y);
  }
};

// CALLS is the row of instructions, each OUT(...).
#define OUT(...) rows.put(__VA_ARGS__);
extern "C" __global__ void arithmetic(const unsigned* in, unsigned* out) {
  const unsigned* mine = in + blockIdx.x * 96 + threadIdx.x;
  const unsigned x = mine[0], y = mine[32], z = mine[64];
  const float fx = __uint_as_float(x), fy = __uint_as_float(y), fz = __uint_as_float(z);
  // A pair of f32 makes two rows.
  Rows rows{out + blockIdx.x * ROWS * 32 + threadIdx.x, 0};
  CALLS
}
