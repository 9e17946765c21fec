// A trace of tensor memory, by instruction, in the order of issue: what is allocated, given back and touched.
// tensor_trace.py reads it.
#pragma once
#include "emulator/runtime/tensor_memory.hpp"

namespace emulator {

// `product`: D of tcgen05.mma, or what tcgen05.cp writes; `operand`: A in tensor memory.
enum class Tensor : u32 { alloc, dealloc, load, store, product, operand };

// A row of the trace, as Python reads it: `warp` is that of the block, `adds` whether a product keeps what D held.
struct TensorAccess {
  u32 kind, resident, warp, groups, column, columns, adds;
};

// Nothing, where nobody traces.
void trace_tensor(Tensor kind, const Region& region, bool adds = false);

}  // namespace emulator
