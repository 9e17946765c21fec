// As many products in flight as the queue of the tensor cores takes. Of a pair, one block asks for both.
#include "tcgen05_loop.cuh"

extern "C" __global__ void __cluster_dims__(GROUP, 1, 1) __launch_bounds__(kThreads, 1)
    tcgen05_throughput(const unsigned* a, const unsigned* b, const unsigned* scales, int a_rows, int b_rows,
                       unsigned instruction, int d_columns, int trips, SUM* out, long long* clocks) {
  tcgen05_loop<GROUP, A_IN_TENSOR_MEMORY, false>({a, b, scales, a_rows, b_rows}, instruction, d_columns, trips, out,
                                                 clocks);
}
