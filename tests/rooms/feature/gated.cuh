// Add tanh(gate) * (key - query) / 64. launch.gate_scale is what a 64th is worth among raw scores.
#pragma once

template <class Scores>
__device__ __forceinline__ void change_gated(Scores& s, const Launch& launch, const Work& work, int row, int column) {
  const float gate = 1.f - __fdividef(2.f, 1.f + ptx::ex2(2.88539008f * launch.gate[work.head]));
#pragma unroll
  for (int i = 0; i < Scores::kCount; ++i)
    s[i] += gate * launch.gate_scale * static_cast<float>(column + Scores::column(i) - row - Scores::row(i));
}
