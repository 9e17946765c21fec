// mma.sync m16n8: gather the fragments of 32 lanes into matrices, multiply, scatter. The layouts are those that the
// headers cuda/ptx/mma_sync*.cuh state. Sums are in f32, in order of k (tensor cores align and truncate instead, so
// results differ in the last bits), and exact where they are integers.
#include "emulator/runtime/number.hpp"
#include "emulator/runtime/warp.hpp"

namespace emulator {

namespace {

struct Lane {
  void* d;
  const u32 *a, *b;
};

// A word holds P neighbours in k.
template <u32 K, u32 P>
struct Tile {
  float a[16][K], b[K][8], d[16][8];

  void gather(Lane** lanes, Type a_type, Type b_type) {
    for (u32 lane = 0; lane < kWarp; ++lane) {
      u32 g = lane / 4, t = lane % 4;
      for (u32 i = 0; i < K / 2; ++i) {
        u32 word = i / P;
        a[g + word % 2 * 8][word / 2 * 4 * P + t * P + i % P] = element<P>(lanes[lane]->a, i, a_type);
      }
      for (u32 i = 0; i < K / 4; ++i) b[i / P * 4 * P + t * P + i % P][g] = element<P>(lanes[lane]->b, i, b_type);
    }
  }

  void multiply() {
    for (u32 row = 0; row < 16; ++row)
      for (u32 k = 0; k < K; ++k)
        for (u32 column = 0; column < 8; ++column) d[row][column] += a[row][k] * b[k][column];
  }

  // Integers start from 0, since an f32 does not hold every s32, and are added at the end.
  float begin(const void* registers, u32 i, Sums sums) {
    if (sums == Sums::f32) return static_cast<const float*>(registers)[i];
    return sums == Sums::f16 ? element<2>(static_cast<const u32*>(registers), i, Type::f16) : 0.f;
  }

  void end(void* registers, u32 i, Sums sums, float sum) {
    if (sums == Sums::f32)
      static_cast<float*>(registers)[i] = sum;
    else if (sums == Sums::f16)
      static_cast<u16*>(registers)[i] = narrow(sum, Type::f16);
    else
      static_cast<u32*>(registers)[i] = add_s32(static_cast<u32*>(registers)[i], sum, sums);
  }

  template <class Visit>
  void accumulators(Visit visit) {
    for (u32 lane = 0; lane < kWarp; ++lane)
      for (u32 i = 0; i < 4; ++i) visit(lane, i, d[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2]);
  }
};

template <u32 K, u32 P>
void multiply(Lane** lanes, Type a_type, Type b_type, Sums sums) {
  Tile<K, P> tile;
  tile.gather(lanes, a_type, b_type);
  tile.accumulators([&](u32 lane, u32 i, float& sum) { sum = tile.begin(lanes[lane]->d, i, sums); });
  tile.multiply();
  tile.accumulators([&](u32 lane, u32 i, float& sum) { tile.end(lanes[lane]->d, i, sums, sum); });
}

}  // namespace

void mma_m16n8(const char* name, void* d, const u32* a, const u32* b, u32 k, Type a_type, Type b_type, Sums sums) {
  Lane mine{d, a, b};
  // A row of A has 16 or 32 bytes.
  auto run = multiply<32, 4>;
  if (bytes_of(a_type) == 4) run = k == 4 ? multiply<4, 1> : multiply<8, 1>;
  if (bytes_of(a_type) == 2) run = k == 8 ? multiply<8, 2> : multiply<16, 2>;
  if (bytes_of(a_type) == 1 && k == 16) run = multiply<16, 4>;
  collective(name, kFullMask, mine, [=](Lane** lanes) { run(lanes, a_type, b_type, sums); });
}

}  // namespace emulator
