#include "chain.cuh"
#include "pair.cuh"

struct Ffma2 {
  __device__ Pair operator()(Pair x, Pair a, Pair b) { return ptx::ffma2(x.both, a.both, b.both); }
};

extern "C" __global__ void ffma2_latency(const Pair* in, Pair* out, long long* clocks) {
  chain_latency<Ffma2, Pair, CHAIN>(in, out, clocks);
}
