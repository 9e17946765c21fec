// Scores become tanh(s * launch.softcap), which is softmax scale / cap: times the cap, by the scale of exp2, they are
// softcapped.
#pragma once

// tanh by one exponential and one division. tanh.approx errs by 2^-11 (PTX ISA), which a cap of 50 would make 0.02 of a
// score. The division is div.approx, right to 2 ulp: a rounded one takes eight instructions and a branch for every
// score, and registers that a tile does not leave.
__device__ __forceinline__ float exact_tanh(float x) { return 1.f - __fdividef(2.f, 1.f + ptx::ex2(2.88539008f * x)); }

template <class Scores>
__device__ __forceinline__ void change_softcap(Scores& s, const Launch& launch, const Work&, int, int) {
#pragma unroll
  for (int i = 0; i < Scores::kCount; ++i) s[i] = exact_tanh(s[i] * launch.softcap);
}
