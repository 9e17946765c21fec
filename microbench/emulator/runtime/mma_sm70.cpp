// mma.sync m8n8k4: four products of 8 x 8 x 4 at once, one for each quad pair (lanes 4q to 4q + 3 and 16 + 4q to
// 19 + 4q). The layouts are those that cuda/ptx/mma_sm70.cuh states.
#include "emulator/runtime/warp.hpp"

namespace emulator {

namespace {

struct Lane {
  void* d;
  const u32 *a, *b;
};

float half_of(const u32* words, u32 i) { return widen(static_cast<u16>(words[i / 2] >> i % 2 * 16), Type::f16); }

float read_d(const Lane& lane, u32 i, bool f32) {
  return f32 ? static_cast<float*>(lane.d)[i] : half_of(static_cast<u32*>(lane.d), i);
}

void write_d(Lane& lane, u32 i, bool f32, float value) {
  if (f32) {
    static_cast<float*>(lane.d)[i] = value;
    return;
  }
  u32& word = static_cast<u32*>(lane.d)[i / 2];
  u32 shift = i % 2 * 16;
  word = (word & ~(0xFFFFu << shift)) | u32{narrow(value, Type::f16)} << shift;
}

// `mine`: 0 to 7, the lane's number in its quad pair.
void multiply_quad_pair(Lane** lanes, u32 pair, bool a_column, bool b_row, bool f32) {
  float a[8][4], b[4][8];
  auto lane_of = [pair](u32 mine) { return pair * 4 + mine % 4 + mine / 4 * 16; };
  for (u32 mine = 0; mine < 8; ++mine) {
    const Lane& lane = *lanes[lane_of(mine)];
    for (u32 i = 0; i < 4; ++i) {
      // Along the stored direction a lane holds four neighbours; across it, the lane's number in its quad.
      u32 along = i + mine / 4 * 4, across = mine % 4;
      (a_column ? a[along][across] : a[mine][i]) = half_of(lane.a, i);
      (b_row ? b[across][along] : b[i][mine]) = half_of(lane.b, i);
    }
  }
  for (u32 mine = 0; mine < 8; ++mine)
    for (u32 i = 0; i < 8; ++i) {
      u32 row = f32 ? mine % 2 + (i & 2) + mine / 4 * 4 : mine;
      u32 column = f32 ? (i & 4) + (mine & 2) + i % 2 : i;
      float sum = 0;
      for (u32 k = 0; k < 4; ++k) sum += a[row][k] * b[k][column];
      Lane& lane = *lanes[lane_of(mine)];
      write_d(lane, i, f32, read_d(lane, i, f32) + sum);
    }
}

}  // namespace

void mma_m8n8k4(void* d, const u32* a, const u32* b, bool a_column, bool b_row, bool f32) {
  static const char* const names[] = {"mma.m8n8k4.row.col.f16", "mma.m8n8k4.row.row.f16", "mma.m8n8k4.col.col.f16",
                                      "mma.m8n8k4.col.row.f16", "mma.m8n8k4.row.col.f32", "mma.m8n8k4.row.row.f32",
                                      "mma.m8n8k4.col.col.f32", "mma.m8n8k4.col.row.f32"};
  Lane mine{d, a, b};
  collective(names[f32 * 4 + a_column * 2 + b_row], kFullMask, mine, [=](Lane** lanes) {
    for (u32 pair = 0; pair < 4; ++pair) multiply_quad_pair(lanes, pair, a_column, b_row, f32);
  });
}

}  // namespace emulator
