// The C++ bodies of cuda/ptx/mma_sync.cuh.
#pragma once

namespace ptx {

#define PTX_MMA(K, TYPE, D_TYPE, D_WORDS, SUMS, A_WORDS, B_WORDS)                                                    \
  inline void mma_m16n8k##K##_##TYPE(D_TYPE(&d)[D_WORDS], const unsigned (&a)[A_WORDS],                              \
                                     const unsigned (&b)[B_WORDS]) {                                                 \
    emulator::mma_m16n8("mma.m16n8k" #K "." #SUMS "." #TYPE, d, a, b, K, emulator::Type::TYPE, emulator::Type::TYPE, \
                        emulator::Sums::SUMS);                                                                       \
  }

PTX_MMA(16, bf16, float, 4, f32, 4, 2)
PTX_MMA(16, f16, float, 4, f32, 4, 2)
PTX_MMA(16, f16, unsigned, 2, f16, 4, 2)
PTX_MMA(8, bf16, float, 4, f32, 2, 1)
PTX_MMA(8, f16, float, 4, f32, 2, 1)
PTX_MMA(8, f16, unsigned, 2, f16, 2, 1)
PTX_MMA(8, tf32, float, 4, f32, 4, 2)
PTX_MMA(4, tf32, float, 4, f32, 2, 1)
#undef PTX_MMA

}  // namespace ptx
