// The two products of a consumer warpgroup, and what they hold in its registers.
#pragma once
#include "online_softmax.cuh"
#include "produce.cuh"
#include "ptx/convert.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/wgmma.cuh"

struct Products {
  using Scores = RowPair<kKeys / 2>;
  const Rooms& at;
  const int group;
  Ring<kStages> v{};  // of the tile of V that is multiplied next; K is there or one tile ahead
  RowPair<kValueDim / 2> o;
  Scores s;
  unsigned p[kKeys / 16][4], held[kQInRegisters ? kHeadDim / 16 : 1][4];

  // Q, as the operand in registers that a product takes.
  __device__ __forceinline__ void hold_queries() {
    constexpr int kSpan = KeyPanels::kSpan;
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16 + lane % 16;
    const unsigned mine = at.q + group * kQBytes + row * kSpan;
    const unsigned swizzle = (kSpan == 128 ? row % 8 : row / 2 % 4) * 16;
#pragma unroll
    for (int i = 0; i < kHeadDim / 16; ++i) {
      const int panel = i * 16 / KeyPanels::kWidth, within = i * 16 % KeyPanels::kWidth * 2;
      ptx::ldmatrix(held[i], mine + panel * kGroupRows * kSpan + ((within + lane / 16 * 16) ^ swizzle));
    }
  }

  // s = Q K^T
  __device__ __forceinline__ void multiply_scores(Ring<kStages> k) {
    constexpr int kSpan = KeyPanels::kSpan;
    const unsigned long long q_tile = ptx::matrix_descriptor(at.q + group * kQBytes, 16, 8 * kSpan, kSpan);
    const unsigned long long k_tile = ptx::matrix_descriptor(at.k + k.stage() * kKBytes, 16, 8 * kSpan, kSpan);
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < kHeadDim / 16; ++i) {
      const int panel = i * 16 / KeyPanels::kWidth, within = i * 16 % KeyPanels::kWidth * 2;
      const unsigned long long q_step = (panel * kGroupRows * kSpan + within) >> 4;
      const unsigned long long k_step = (panel * kKeys * kSpan + within) >> 4;
      if constexpr (kQInRegisters && kBf16)
        ptx::wgmma_bf16_rs(s.at, held[i], k_tile + k_step, kSeeded || i > 0);
      else if constexpr (kQInRegisters)
        ptx::wgmma_f16_rs(s.at, held[i], k_tile + k_step, kSeeded || i > 0);
      else if constexpr (kBf16)
        ptx::wgmma_bf16_ss(s.at, q_tile + q_step, k_tile + k_step, kSeeded || i > 0);
      else
        ptx::wgmma_f16_ss(s.at, q_tile + q_step, k_tile + k_step, kSeeded || i > 0);
    }
    ptx::wgmma_commit();
  }

  // o += p V. V lies as keys x value dim: B is MN-major, 16 keys are two groups of eight rows.
  __device__ __forceinline__ void multiply_values(bool accumulate) {
    constexpr int kSpan = ValuePanels::kSpan;
    const unsigned long long v_tile =
        ptx::matrix_descriptor(at.v + v.stage() * kVBytes, kKeys * kSpan, 8 * kSpan, kSpan);
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < kKeys / 16; ++i) {
      const unsigned long long step = (i * 16 * kSpan) >> 4;
      if constexpr (kBf16)
        ptx::wgmma_bf16_rs<ptx::Major::MN>(o.at, p[i], v_tile + step, accumulate || i > 0);
      else
        ptx::wgmma_f16_rs<ptx::Major::MN>(o.at, p[i], v_tile + step, accumulate || i > 0);
    }
    ptx::wgmma_commit();
  }

  __device__ __forceinline__ void pack(int i, float one, float other) {
    p[i / 4][i % 4] = kBf16 ? ptx::pack_bf16(one, other) : ptx::pack_f16(one, other);
  }

  __device__ __forceinline__ void pack() {
#pragma unroll
    for (int i = 0; i < kKeys / 4; ++i) pack(i, s[2 * i], s[2 * i + 1]);
  }
};
