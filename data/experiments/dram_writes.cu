// Constant and mixed values, 8 and 16 bytes a thread, one chunk a block or blocks that stay: what writes DRAM fastest?
#include "clocks.cuh"

extern "C" __global__ void __launch_bounds__(1024) grid_of_8(double* out, u64 count, double value) {
  u64 i = threadIdx.x + (u64)blockIdx.x * 1024;
  if (i < count) out[i] = value;
}

extern "C" __global__ void __launch_bounds__(1024) grid_of_16(float4* out, u64 count, float value) {
  u64 i = threadIdx.x + (u64)blockIdx.x * 1024;
  if (i < count) out[i] = make_float4(value, value, value, value);
}

extern "C" __global__ void __launch_bounds__(1024) grid_of_16_mixed(float4* out, u64 count, float) {
  u64 i = threadIdx.x + (u64)blockIdx.x * 1024, mixed = i * 0x9E3779B97F4A7C15ull;
  if (i < count)
    out[i] = make_float4(__uint_as_float(mixed), __uint_as_float(mixed >> 32), __uint_as_float(mixed * 3),
                         __uint_as_float(mixed * 5));
}

extern "C" __global__ void __launch_bounds__(1024) staying_in_turn(float4* out, u64 count, float value) {
  for (u64 i = threadIdx.x + (u64)blockIdx.x * 1024; i < count; i += 1024ull * gridDim.x)
    out[i] = make_float4(value, value, value, value);
}

extern "C" __global__ void __launch_bounds__(1024) staying_on_its_own(float4* out, u64 count, float value) {
  u64 each = count / gridDim.x, begin = each * blockIdx.x;
  for (u64 i = threadIdx.x; i < each; i += 1024) out[begin + i] = make_float4(value, value, value, value);
}
