// The C++ bodies of cuda/ptx/mma_sm70.cuh.
#pragma once

namespace ptx {

template <Order A, Order B>
inline void mma_m8n8k4(float (&d)[8], const unsigned (&a)[2], const unsigned (&b)[2]) {
  emulator::mma_m8n8k4(d, a, b, A == Order::col, B == Order::row, true);
}

template <Order A, Order B>
inline void mma_m8n8k4(unsigned (&d)[4], const unsigned (&a)[2], const unsigned (&b)[2]) {
  emulator::mma_m8n8k4(d, a, b, A == Order::col, B == Order::row, false);
}

}  // namespace ptx
