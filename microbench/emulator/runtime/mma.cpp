// mma.sync: gather the fragments of 32 lanes into matrices, multiply, scatter. The layouts are those that the headers
// cuda/ptx/mma_*.cuh state. Products are exact in f32; sums are in f32, in order of k (tensor cores align and
// truncate instead, so results differ in the last bits).
#include "emulator/runtime/warp.hpp"

namespace emulator {

namespace {

float lower(u32 word, Type type) { return widen(static_cast<u16>(word), type); }
float upper(u32 word, Type type) { return widen(static_cast<u16>(word >> 16), type); }
float f32_of(u32 word) {
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

struct Lane {
  float* d;
  const u32 *a, *b;
};

template <u32 K>
struct Tile {
  float a[16][K], b[K][8], d[16][8];

  void multiply() {
    for (u32 row = 0; row < 16; ++row)
      for (u32 k = 0; k < K; ++k)
        for (u32 column = 0; column < 8; ++column) d[row][column] += a[row][k] * b[k][column];
  }

  void accumulators(Lane** lanes, bool scatter) {
    for (u32 lane = 0; lane < kWarp; ++lane)
      for (u32 i = 0; i < 4; ++i) {
        float& inside = d[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
        float& outside = lanes[lane]->d[i];
        if (scatter)
          outside = inside;
        else
          inside = outside;
      }
  }
};

void multiply_k16(Lane** lanes, Type type) {
  Tile<16> tile;
  for (u32 lane = 0; lane < kWarp; ++lane) {
    u32 g = lane / 4, t = lane % 4 * 2;
    for (u32 i = 0; i < 4; ++i) {
      float* pair = &tile.a[g + i % 2 * 8][t + i / 2 * 8];
      pair[0] = lower(lanes[lane]->a[i], type);
      pair[1] = upper(lanes[lane]->a[i], type);
    }
    for (u32 i = 0; i < 2; ++i) {
      tile.b[t + i * 8][g] = lower(lanes[lane]->b[i], type);
      tile.b[t + i * 8 + 1][g] = upper(lanes[lane]->b[i], type);
    }
  }
  tile.accumulators(lanes, false);
  tile.multiply();
  tile.accumulators(lanes, true);
}

void multiply_k8(Lane** lanes, Type type) {
  Tile<8> tile;
  for (u32 lane = 0; lane < kWarp; ++lane) {
    u32 g = lane / 4, t = lane % 4;
    if (type == Type::tf32) {
      // The lower 13 bits of a tf32 register are ignored.
      for (u32 i = 0; i < 4; ++i) tile.a[g + i % 2 * 8][t + i / 2 * 4] = f32_of(lanes[lane]->a[i] & ~0x1FFFu);
      for (u32 i = 0; i < 2; ++i) tile.b[t + i * 4][g] = f32_of(lanes[lane]->b[i] & ~0x1FFFu);
      continue;
    }
    for (u32 i = 0; i < 2; ++i) {
      tile.a[g + i * 8][t * 2] = lower(lanes[lane]->a[i], type);
      tile.a[g + i * 8][t * 2 + 1] = upper(lanes[lane]->a[i], type);
    }
    tile.b[t * 2][g] = lower(lanes[lane]->b[0], type);
    tile.b[t * 2 + 1][g] = upper(lanes[lane]->b[0], type);
  }
  tile.accumulators(lanes, false);
  tile.multiply();
  tile.accumulators(lanes, true);
}

const char* name_of(const char* const (&names)[3], Type type) { return names[static_cast<int>(type)]; }

}  // namespace

void mma_m16n8k16(float* d, const u32* a, const u32* b, Type type) {
  static const char* const names[] = {"mma.m16n8k16.f16", "mma.m16n8k16.bf16", "mma.m16n8k16.tf32"};
  Lane mine{d, a, b};
  collective(name_of(names, type), kFullMask, mine, [type](Lane** lanes) { multiply_k16(lanes, type); });
}

void mma_m16n8k8(float* d, const u32* a, const u32* b, Type type) {
  static const char* const names[] = {"mma.m16n8k8.f16", "mma.m16n8k8.bf16", "mma.m16n8k8.tf32"};
  Lane mine{d, a, b};
  collective(name_of(names, type), kFullMask, mine, [type](Lane** lanes) { multiply_k8(lanes, type); });
}

}  // namespace emulator
