// The writer: one warp that takes outputs from shared memory to global memory, whole sectors of eight rows at a time,
// while the correction warps go on. TMA would write rows past the end of a packed sequence.
#pragma once
#include "block_pair.cuh"
#include "store.cuh"

// 32 columns of the rows from `row` on.
__device__ __forceinline__ void write_piece(const Launch& launch, const Work& work, unsigned piece, int row,
                                            int column) {
  const int lane = threadIdx.x % 32, part = lane % 4;
  column += 8 * part;
#pragma unroll 4
  for (int first = 0; first < kRows; first += 8) {
    const int mine = first + lane / 4;
    const ptx::vec4 words = ptx::load_shared4(piece + mine * kPiecePitch + 16 * part);
    const bool inside = row + mine < work.queries && column < out_columns(launch);
    ptx::store4_if(inside, row_address(launch, work, row + mine) + 2 * column, words);
  }
}

__device__ __forceinline__ void write(const Launch& launch, const Rooms& at) {
  Ring<2> piece;
  Slot slot;
  while (true) {
    const ptx::vec4 tile_at = receive(at, slot, threadIdx.x % 32);
    if (tile_at.x == kNoTile) break;
    const Work work = own_work(launch, tile_at);
    if (work.sees_nothing()) continue;
    for (int query_tile = 0; query_tile < kQueryTiles; ++query_tile)
      for (int column = 0; column < kValueDim; column += kPieceColumns) {
        ptx::mbarrier_wait(at.piece_full + 8 * piece.stage(), piece.parity());
        write_piece(launch, work, at.piece + piece.stage() * kPieceBytes, work.row + query_tile * kRows, column);
        arrive_together(at.piece_empty + 8 * piece.stage());
        piece.advance();
      }
  }
}
