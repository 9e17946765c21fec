// The C++ bodies of cuda/ptx/mma_sync.cuh.
#pragma once

namespace ptx {

// A row of A has BYTES bytes, 16 or 32.
#define PTX_MMA(K, BYTES, NAME, A, B, D_TYPE, D_WORDS, SUMS)                                                   \
  inline void mma_m16n8k##K##_##NAME(D_TYPE(&d)[D_WORDS], const unsigned (&a)[BYTES / 8],                      \
                                     const unsigned (&b)[BYTES / 16]) {                                        \
    emulator::mma_m16n8("mma.m16n8k" #K "." #SUMS "." #NAME, d, a, b, K, emulator::Type::A, emulator::Type::B, \
                        emulator::Sums::SUMS);                                                                 \
  }

PTX_MMA(16, 32, bf16, bf16, bf16, float, 4, f32)
PTX_MMA(16, 32, f16, f16, f16, float, 4, f32)
PTX_MMA(16, 32, f16, f16, f16, unsigned, 2, f16)
PTX_MMA(8, 16, bf16, bf16, bf16, float, 4, f32)
PTX_MMA(8, 16, f16, f16, f16, float, 4, f32)
PTX_MMA(8, 16, f16, f16, f16, unsigned, 2, f16)
PTX_MMA(8, 32, tf32, tf32, tf32, float, 4, f32)
PTX_MMA(4, 16, tf32, tf32, tf32, float, 4, f32)

}  // namespace ptx
