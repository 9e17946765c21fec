// The issuer: one warp that multiplies. Products execute in the order of their issue, so that scores may follow p V into
// the columns where P lay; what other warps did to tensor memory is waited for.
#pragma once
#include "block_pair.cuh"
#include "ptx/tcgen05.cuh"

constexpr ptx::Operand kOperand = kBf16 ? ptx::Operand::bf16 : ptx::Operand::f16;

struct Issuer {
  const Launch& launch;
  const Rooms& at;
  const unsigned memory;
  Ring<kStages> next{}, k{}, v{};  // the tile of K or V that comes next, and those that turns now use
  Turn scores{}, values{};
  Ring<1> q{};

  // The next tile of the ring, when it has come.
  __device__ __forceinline__ Ring<kStages> receive_keys() {
    const Ring<kStages> found = next;
    next.advance();
    ptx::mbarrier_wait(at.kv_full + 8 * found.stage(), found.parity());
    return found;
  }

  // S = Q K^T of a tile of keys, counted from the last one down.
  __device__ __forceinline__ void multiply_scores(int query_tile, int tile, int tiles) {
    constexpr unsigned kInstruction = ptx::tcgen05_instruction(kOperand, kOperand, kGroup * kRows, kKeys);
    if (query_tile == 0) k = receive_keys();
    if (tile == 0) ptx::mbarrier_wait(at.q_full + 8 * query_tile, q.parity());
    if (ptx::elect_one()) {
      constexpr int kSpan = KeyPanels::kSpan, kWidth = KeyPanels::kWidth;
      const unsigned to = memory + scores.stage() * kScoreColumns;
      const unsigned long long q_tile = ptx::tcgen05_matrix(at.q + query_tile * kQBytes, 16, 8 * kSpan, kSpan);
      const unsigned long long k_tile = ptx::tcgen05_matrix(at.kv + k.stage() * kStageBytes, 16, 8 * kSpan, kSpan);
#pragma unroll
      for (int i = 0; i < kHeadDim / 16; ++i) {
        const int panel = i * 16 / kWidth, within = i * 16 % kWidth * 2;
        ptx::tcgen05_mma_f16_ss<kGroup>(to, q_tile + ((panel * kRows * kSpan + within) >> 4),
                                        k_tile + ((panel * kHeldKeys * kSpan + within) >> 4), kInstruction, i > 0);
      }
      if (query_tile == kQueryTiles - 1) commit(at.kv_empty + 8 * k.stage());
      if (tile == tiles - 1) commit(at.q_empty + 8 * query_tile);
      commit(at.s_full + 8 * scores.stage());
    }
    scores.advance();
  }

  // O += P V. V lies as keys x value dim: B is MN-major, 16 keys are two groups of eight rows.
  __device__ __forceinline__ void multiply_values(int query_tile, int tile) {
    constexpr unsigned kInstruction =
        ptx::tcgen05_instruction(kOperand, kOperand, kGroup * kRows, kValueDim, ptx::Major::K, ptx::Major::MN);
    if (query_tile == 0) v = receive_keys();
    ptx::mbarrier_wait(at.ready + 8 * values.stage(), values.parity());
    ptx::tcgen05_fence_after();
    if (ptx::elect_one()) {
      constexpr int kSpan = ValuePanels::kSpan;
      const unsigned to = memory + kOutputs + query_tile * kValueDim, p = memory + values.stage() * kScoreColumns;
      const unsigned long long v_tile =
          ptx::tcgen05_matrix(at.kv + v.stage() * kStageBytes, kKeys * kSpan, 8 * kSpan, kSpan);
#pragma unroll
      for (int i = 0; i < kKeys / 16; ++i)
        ptx::tcgen05_mma_f16_ts<kGroup>(to, p + 8 * i, v_tile + (i * 16 * kSpan >> 4), kInstruction, tile > 0 || i > 0);
      if (query_tile == kQueryTiles - 1) commit(at.kv_empty + 8 * v.stage());
      commit(at.o_full + 8 * query_tile);
    }
    values.advance();
  }

  // All turns of a tile of rows.
  __device__ __forceinline__ void run(int tiles) {
#pragma unroll
    for (int turn = 0; turn < kTurnsAhead; ++turn)
      if (turn / kQueryTiles < tiles) multiply_scores(turn % kQueryTiles, turn / kQueryTiles, tiles);
    for (int tile = 0; tile < tiles; ++tile)
#pragma unroll
      for (int query_tile = 0; query_tile < kQueryTiles; ++query_tile) {
        multiply_values(query_tile, tile);
        if (tile + kTilesAhead < tiles) multiply_scores(query_tile, tile + kTilesAhead, tiles);
      }
    q.advance();
  }
};

__device__ __forceinline__ void multiply(const Launch& launch, const Rooms& at, unsigned memory) {
  Issuer self{launch, at, memory};
  Slot slot;
  while (true) {
    const ptx::vec4 tile_at = receive(at, slot, threadIdx.x % 32);
    if (tile_at.x == kNoTile) break;
    const Work work = own_work(launch, tile_at);
    if (!work.sees_nothing()) self.run(tiles_of(work));
  }
}
