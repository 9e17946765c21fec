// What a consumer warpgroup goes through: tiles of rows one after another, crossed, or parts of their keys.
#pragma once
#include "consume.cuh"
#include "partials.cuh"

struct RowsConsumer : Consumer {
  // All tiles of rows, one after another.
  __device__ __forceinline__ void take_rows() {
    Slot slot;
    while (true) {
      const ptx::vec4 number = next(slot);
      if (number.x == kNoTile) break;
      const Work work = work_of(launch, number);
      if constexpr (kPackGqa)
        if (has_none(work)) {
          pass_by(work);
          store_unseen(work);
          continue;
        }
      if (work.sees_nothing()) {
        store_unseen(work);
      } else {
        const int row = first_row(work);
        const bool accumulate = run(work, row, first(work, row));
        last(work, row, accumulate);
        store(work, first_row(work), state);
      }
    }
  }

  // The same of parts of their keys, which the block leaves that took them: the next number's message says who did.
  __device__ __forceinline__ void take_parts() {
    Slot slot;
    ptx::vec4 number = next(slot);
    while (number.x != kNoTile) {
      const Part work = Part::of(launch, number);
      const bool nothing = work.sees_nothing();
      bool none = false;
      if constexpr (kPackGqa) none = has_none(work);
      if (none) {
        pass_by(work);
      } else if (!nothing) {
        const int row = first_row(work);
        const bool accumulate = run(work, row, first(work, row));
        last(work, row, accumulate);
      }
      number = next(slot);
      if (!work.is_left(number)) continue;
      if (nothing)
        store_unseen(work);
      else
        Partials{launch}.leave(work, threadIdx.x / 32 - 4, !none, o, state);
    }
    Partials{launch}.bring_together(threadIdx.x / 32 - 4);
  }

  // The same, where the next rows cross these: those that begin with the last tile of keys.
  __device__ __forceinline__ void take_rows_crossed() {
    Slot slot;
    ptx::vec4 number = next(slot);
    while (number.x != kNoTile) {
      Work work = work_of(launch, number);
      if (work.sees_nothing()) {
        store_unseen(work);
        number = next(slot);
        continue;
      }
      int row = first_row(work), tile = first(work, row);
      bool accumulate;
      while (true) {
        accumulate = run(work, row, tile);
        number = next(slot);
        if (number.x == kNoTile) break;
        const Work following = work_of(launch, number);
        const int its_row = first_row(following);
        if (following.sees_nothing() || first_seen(following, its_row) < following.last - 1) break;
        tile = cross(following, its_row, work, row, accumulate);
        work = following;
        row = its_row;
      }
      last(work, row, accumulate);
      store(work, row, state);
    }
  }
};

__device__ __forceinline__ void consume(const Launch& launch, const Rooms& at) {
  // From one lane to all: ptxas keeps what follows from it in uniform registers.
  RowsConsumer self{{{{at, __shfl_sync(~0u, static_cast<int>(threadIdx.x) / 128 - 1, 0)}, launch}}};
  if (kPingpong && self.group == kWarpgroups - 1) self.pass_turn();
  if constexpr (kCrosses)
    self.take_rows_crossed();
  else if constexpr (kKeyParts)
    self.take_parts();
  else
    self.take_rows();
}
