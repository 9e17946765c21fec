// Uses the first word of whatever shared memory the launch asks for.
extern "C" __global__ void oversized(int* out) {
  extern __shared__ int words[];
  if (threadIdx.x == 0) words[0] = *out;
  __syncthreads();
  out[threadIdx.x] = words[0];
}
