// Which rows of its slot a sequence uses: numbers in device memory, null where all are used. What lies outside of the slot
// is not used, whatever they say.
#pragma once

// Of a slot all queries, and the keys before the first that is used. Builds without ranges have no such members: they
// would move registers.
template <bool Ranges>
struct RowsOfSlot {
  static constexpr int rows = 0, skipped = 0;
};

template <>
struct RowsOfSlot<true> {
  int rows, skipped;
};

// `work` has all rows of its slot.
template <class Work, class Launch>
__device__ __forceinline__ void use_ranges(Work& work, const Launch& launch) {
  if constexpr (kRanges) {
    work.rows = work.queries;
    work.skipped = 0;
    if (launch.seqused_q) work.queries = max(0, min(work.queries, launch.seqused_q[work.batch]));
    if (launch.seqused_k) work.keys = max(0, min(work.keys, launch.seqused_k[work.batch]));
    if (launch.leftpad_k) work.skipped = max(0, min(work.keys, launch.leftpad_k[work.batch]));
    work.keys -= work.skipped;
    work.key_start += work.skipped;
  }
}
