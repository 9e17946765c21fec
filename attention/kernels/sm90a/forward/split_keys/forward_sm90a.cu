// Attention forward for sm90a where tiles of rows alone leave SMs idle: the kernel of all that architecture's rows over a
// part of the keys (parts.cuh).
#include "block.cuh"

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    attention_forward_sm90a_split(const __grid_constant__ Launch launch) {
  run_block(launch);
}
