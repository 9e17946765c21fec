// The correction warpgroup: it brings outputs in tensor memory to the scale of the next p V, off the way of the softmax,
// and at last divides them by the sums and hands them to the writer. A thread has a row of each query tile.
#pragma once
#include "block_pair.cuh"
#include "exponentials.cuh"
#include "store.cuh"

struct Correction {
  const Launch& launch;
  const Rooms& at;
  const int thread;
  const unsigned outputs;  // of this warp's lanes
  Ring<1> keys{}, sums{};  // tiles of keys before this one, tiles of rows
  Ring<2> piece{};

  // What p V of the tile of keys before this one added.
  __device__ __forceinline__ void await_values(int query_tile) const {
    ptx::mbarrier_wait(at.o_full + 8 * query_tile, keys.parity() ^ 1);
    ptx::tcgen05_fence_after();
  }

  __device__ __forceinline__ void rescale_outputs(int query_tile, float factor) const {
    constexpr int kPart = 16;  // columns at a time: several are under way in these registers
#pragma unroll
    for (int column = 0; column < kValueDim; column += kPart) {
      const unsigned from = outputs + query_tile * kValueDim + column;
      unsigned o[kPart];
      ptx::tcgen05_ld_32x32b(o, from);
      ptx::tcgen05_wait_ld();
#pragma unroll
      for (int i = 0; i < kPart; ++i) o[i] = __float_as_uint(__uint_as_float(o[i]) * factor);
      ptx::tcgen05_st_32x32b(from, o);
    }
    ptx::tcgen05_wait_st();
  }

  __device__ __forceinline__ void step(int query_tile, bool first) const {
    const Turn turn{keys.count * kQueryTiles + query_tile};
    ptx::mbarrier_wait(at.factor_full + 8 * turn.stage(), turn.parity());
    const float factor = __uint_as_float(ptx::load_shared(at.factor + (turn.stage() * kRows + thread) * 4));
    if (!first) {
      await_values(query_tile);
      if (__any_sync(~0u, factor != 1.f)) rescale_outputs(query_tile, factor);
    }
    ptx::tcgen05_fence_before();
    arrive_at_issuer(at.ready + 8 * turn.stage());
  }

  __device__ __forceinline__ void put_piece(unsigned from, float inverse) {
    unsigned o[kPieceColumns], words[kPieceColumns / 2];
    ptx::tcgen05_ld_32x32b(o, from);
    ptx::tcgen05_wait_ld();
#pragma unroll
    for (int i = 0; i < kPieceColumns / 2; ++i)
      words[i] = pack_pair(__uint_as_float(o[2 * i]) * inverse, __uint_as_float(o[2 * i + 1]) * inverse);
    ptx::mbarrier_wait(at.piece_empty + 8 * piece.stage(), piece.parity() ^ 1);
    const unsigned to = at.piece + piece.stage() * kPieceBytes + thread * kPiecePitch;
#pragma unroll
    for (int i = 0; i < kPieceColumns / 2; i += 4)
      ptx::store_shared4(to + 4 * i, {words[i], words[i + 1], words[i + 2], words[i + 3]});
    arrive_together(at.piece_full + 8 * piece.stage());
    piece.advance();
  }

  // A row that no query uses, by its thread: the writer leaves it out.
  __device__ __forceinline__ void write_unused(const Work& work, int row) const {
    if (row < work.queries || row >= work.rows) return;
    const unsigned long long out = row_address(launch, work, row);
    for (int column = 0; column < out_columns(launch); column += 8) ptx::store4(out + 2 * column, {0, 0, 0, 0});
    *lse_of(launch, work, row) = minus_infinity();
  }

  __device__ __forceinline__ void finish_outputs(const Work& work, int query_tile, float sink) {
    ptx::mbarrier_wait(at.sum_full + 8 * query_tile, sums.parity());
    const unsigned mine = (query_tile * kRows + thread) * 4;
    const Finish finished = finish(__uint_as_float(ptx::load_shared(at.sum + mine)),
                                   __uint_as_float(ptx::load_shared(at.offset + mine)), sink);
    arrive_together(at.sum_empty + 8 * query_tile);
    const int row = work.row + query_tile * kRows + thread;
    ptx::store_if(row < work.queries, reinterpret_cast<ptx::u64>(lse_of(launch, work, row)),
                  __float_as_uint(finished.lse));
    if constexpr (kRanges) write_unused(work, row);
    await_values(query_tile);
#pragma unroll 1
    for (int column = 0; column < kValueDim; column += kPieceColumns)
      put_piece(outputs + query_tile * kValueDim + column, finished.inverse);
  }

  __device__ __forceinline__ void run(const Work& work) {
    for (int tile = work.first; tile < work.last; ++tile) {
#pragma unroll
      for (int query_tile = 0; query_tile < kQueryTiles; ++query_tile) step(query_tile, tile == work.first);
      keys.advance();
    }
    const float sink = kLogit ? logit(launch, work) : 0.f;
#pragma unroll
    for (int query_tile = 0; query_tile < kQueryTiles; ++query_tile) finish_outputs(work, query_tile, sink);
    sums.advance();
  }

  // A tile of rows that sees no key at all.
  __device__ __forceinline__ void write_nothing(const Work& work) const {
    for (int row = work.row + thread; row < min(work.queries, work.row + kBlockRows); row += kRows) {
      const unsigned long long out = row_address(launch, work, row);
      for (int column = 0; column < out_columns(launch); column += 8) ptx::store4(out + 2 * column, {0, 0, 0, 0});
      *lse_of(launch, work, row) = finish(0.f, 0.f, kLogit ? logit(launch, work) : 0.f).lse;
    }
    if constexpr (kRanges)
      for (int row = work.row + thread; row < work.row + kBlockRows; row += kRows) write_unused(work, row);
  }
};

__device__ __forceinline__ void correct(const Launch& launch, const Rooms& at, unsigned memory) {
  const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / 32, 0);
  Correction self{launch, at, static_cast<int>(threadIdx.x) % kRows, memory + kOutputs + (warp % 4 * 32 << 16)};
  Slot slot;
  while (true) {
    const ptx::vec4 tile_at = receive(at, slot, threadIdx.x % 32);
    if (tile_at.x == kNoTile) break;
    const Work work = own_work(launch, tile_at);
    if (work.sees_nothing())
      self.write_nothing(work);
    else
      self.run(work);
  }
}
