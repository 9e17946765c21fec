// p of one warp on its way from accumulators to operands, by the Volta kernel's own pack() and fetch_p(). Each element
// is its own number: kScoreKeys / 2 times the lane that made it, plus its place among that lane's accumulators.
#include "rows.cuh"

extern "C" __global__ void exchange(long long* rows, long long* keys, unsigned* operands) {
  constexpr int kHeld = kScoreKeys / 2;
  const Launch launch = {};
  Rows warp(launch);
  const int lane = warp.place.lane;
  rows[lane] = warp.place.operand_row();
  keys[lane] = warp.place.operand_key();
  for (int i = 0; i < kHeld; ++i) warp.s[0][i] = static_cast<float>(lane * kHeld + i);
  warp.pack();
  for (int half = 0; half < Products::kHalves; ++half) {
    warp.fetch_p(half, half % 2);
    for (int four = 0; four < 2; ++four)
      for (int word = 0; word < 2; ++word)
        operands[((lane * Products::kHalves + half) * 2 + four) * 2 + word] =
            warp.operands[half % 2][0][four].word[word];
  }
}
