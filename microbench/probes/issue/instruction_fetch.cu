// LINES lines of straight-line code, 128 bytes each: eight FFMA of 16 bytes, on four chains, so that what does not wait
// for code issues one a cycle. Each launch runs every line once; the host decides where the code is by then.
#include "ptx/math.cuh"
#include "timing.cuh"

// sms: for each block the SM that ran it.
extern "C" __global__ void instruction_fetch(const float* in, float* out, unsigned* sms, long long* clocks) {
  int lane = threadIdx.x % 32;
  if (threadIdx.x == 0) sms[blockIdx.x] = ptx::smid();
  float x[4], a = in[32 + lane], b = in[64 + lane];
#pragma unroll
  for (int i = 0; i < 4; ++i) ptx::settle(x[i] = in[lane] + a * (float)i);
  ptx::settle(a), ptx::settle(b);
  long long start = ptx::clock64();
#pragma unroll
  for (int line = 0; line < LINES; ++line) {
#pragma unroll
    for (int i = 0; i < 8; ++i) x[i % 4] = ptx::ffma(x[i % 4], a, b);
  }
  long long end = ptx::clock64();
  out[blockIdx.x * blockDim.x + threadIdx.x] = x[0] + x[1] + x[2] + x[3];
  report(clocks, start, end);
}
