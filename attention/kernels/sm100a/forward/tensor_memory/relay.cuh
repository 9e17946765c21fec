// The warp of the other block of a pair that would multiply there: a thread can wait for barriers of its own block
// alone, so it tells the issuer when this block's Q and halves of K and V have come, in the order in which they do.
// K and V arrive some tiles before the issuer wants them, which hides the way.
#pragma once
#include "block_pair.cuh"

struct Relay {
  const Rooms& at;
  Ring<kStages> next{};
  Ring<1> q{};

  __device__ __forceinline__ void announce(unsigned full, unsigned parity) const {
    ptx::mbarrier_wait(full, parity);
    ptx::mbarrier_arrive_remote(ptx::map_shared(full, kIssuingBlock));
  }

  __device__ __forceinline__ void announce_keys() {
    announce(at.kv_full + 8 * next.stage(), next.parity());
    next.advance();
  }

  // As the loader has them: the first tile of K, Q, and all that follows.
  __device__ __forceinline__ void run(int tiles) {
    announce_keys();
    for (int each = 0; each < kQueryTiles; ++each) announce(at.q_full + 8 * each, q.parity());
    q.advance();
    for (int i = 1; i < 2 * tiles; ++i) announce_keys();
  }
};

__device__ __forceinline__ void relay(const Launch& launch, const Rooms& at) {
  Relay self{at};
  Slot slot;
  while (true) {
    const ptx::vec4 tile_at = receive(at, slot, threadIdx.x % 32);
    if (tile_at.x == kNoTile) break;
    const Work work = own_work(launch, tile_at);
    if (!work.sees_nothing() && ptx::elect_one()) self.run(tiles_of(work));
    __syncwarp();
  }
}
