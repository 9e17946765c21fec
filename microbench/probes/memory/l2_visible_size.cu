#include "chase.cuh"

extern "C" __global__ void l2_visible_size(ptx::u64* places, const ptx::u64* seconds, int walk_steps, int trips,
                                           long long* clocks) {
  walk_by_block(seconds, walk_steps);
  chase<CHAIN>(places, CHAIN, trips, clocks);
}
