#include "chain.cuh"
#include "pair.cuh"

struct Ffma2 {
  __device__ Pair operator()(Pair x, Pair a, Pair b) { return ptx::ffma2(x.both, a.both, b.both); }
};

extern "C" __global__ void __launch_bounds__(THREADS)
    ffma2_throughput(const Pair* in, int trips, Pair* out, long long* clocks) {
  chain_throughput<Ffma2, Pair, ILP, PER_TRIP>(in, trips, out, clocks);
}
