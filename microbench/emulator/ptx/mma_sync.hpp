// The C++ bodies of cuda/ptx/mma_sync.cuh.
#pragma once

namespace ptx {

inline void mma_m16n8k16_bf16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  emulator::mma_m16n8k16(d, a, b, emulator::Type::bf16);
}
inline void mma_m16n8k16_f16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  emulator::mma_m16n8k16(d, a, b, emulator::Type::f16);
}
inline void mma_m16n8k8_f16(float (&d)[4], const unsigned (&a)[2], const unsigned (&b)[1]) {
  emulator::mma_m16n8k8(d, a, b, emulator::Type::f16);
}
inline void mma_m16n8k8_bf16(float (&d)[4], const unsigned (&a)[2], const unsigned (&b)[1]) {
  emulator::mma_m16n8k8(d, a, b, emulator::Type::bf16);
}
inline void mma_m16n8k8_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  emulator::mma_m16n8k8(d, a, b, emulator::Type::tf32);
}

}  // namespace ptx
