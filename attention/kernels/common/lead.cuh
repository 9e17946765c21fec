// Rows that begin inside of a sector of 32 bytes lie eight columns later in shared memory, behind zeros.
//
// Where a row is an odd number of 16 bytes and heads lie side by side, all rows of every other head begin so. cp.async
// then has each sector sent for each of its halves, and a box of TMA touches one sector more. Read from eight columns
// before, two halves come together; a head dim is held at the next multiple of 16, which leaves room for that. Q lies as K
// does, so that products are the same, and outputs as V, until they are stored. Calls of head dims 152 and 216 take 17 to
// 32 % less time, of 232 4 to 15, one query on a long cache 3 to 16 (H200, row_leads.csv).
//
// A build with LEAD, which is that many columns, knows of it; launch.k_late and v_late say whether tensors lie so.
#pragma once
#include "work.cuh"

#ifdef LEAD
constexpr int kLead = LEAD;
#else
constexpr int kLead = 0;
#endif

// Columns of K and V of a head before a row's first number.
#ifdef LEAD
__device__ __forceinline__ int lead_of_keys(const Launch& launch, int kv_head) {
  return kLead * (launch.k_late & kv_head);
}
__device__ __forceinline__ int lead_of_values(const Launch& launch, int kv_head) {
  return kLead * (launch.v_late & kv_head);
}
#else
__device__ __forceinline__ int lead_of_keys(const Launch&, int) { return 0; }
__device__ __forceinline__ int lead_of_values(const Launch&, int) { return 0; }
#endif

// And of a tile's outputs.
__device__ __forceinline__ int lead_of_outputs(const Launch& launch, const Work& work) {
  return lead_of_values(launch, kv_head_of(launch, work));
}

// Whether a column, counted from a row's first number, is one of the row's.
__device__ __forceinline__ bool is_within(int column, int columns) {
  return kLead ? static_cast<unsigned>(column) < static_cast<unsigned>(columns) : column < columns;
}
