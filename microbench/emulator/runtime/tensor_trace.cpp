#include "emulator/runtime/tensor_trace.hpp"

#include <vector>

namespace emulator {

namespace {

bool tracing = false;
std::vector<TensorAccess> rows;

}  // namespace

void trace_tensor(Tensor kind, const Region& at, bool adds) {
  if (tracing)
    rows.push_back({static_cast<u32>(kind), at.resident, running->warp() % block.warp_slots(), at.groups, at.column,
                    at.columns, adds});
}

}  // namespace emulator

// From now on every access is in the trace, which begins anew; or none is.
extern "C" void smscope_trace_tensor(int on) {
  emulator::rows.clear();
  emulator::tracing = on != 0;
}

extern "C" unsigned long long smscope_traced_tensor(const emulator::TensorAccess** first) {
  *first = emulator::rows.data();
  return emulator::rows.size();
}
