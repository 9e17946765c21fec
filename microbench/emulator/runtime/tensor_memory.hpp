// Tensor memory of the resident blocks: the words, which columns are allocated, and for every column of sixteen lanes
// who touched it last and which writes are still to come.
#pragma once
#include "emulator/runtime/tensor_order.hpp"

namespace emulator {

constexpr u32 kLanes = 128, kColumns = 512, kGrain = 16, kNaN = ~0u;

// Columns of the lanes 16g to 16g + 15 for every bit g of `groups`, in a resident block.
struct Region {
  u32 resident, groups, column, columns;
};
constexpr u32 kAllGroups = 0xFF, kLowerGroups = 0x55;  // M = 64 uses the lower half of each warp's lanes

std::string region_name(const Region& region);

// A range check, and the check that all its columns are allocated.
void require_allocated(const Region& region, const char* what);
// A race is an access that is not ordered after an earlier one, where either writes.
void note_tensor_read(const Region& region, const TensorWork& work, const Knowledge& knowledge);
void note_tensor_write(const Region& region, const TensorWork& work, const Knowledge& knowledge);

// A write is announced when it is issued: until it is done, who comes later reads NaN. Works are numbered.
u64 next_number();
void announce(const Region& region, u64 number);
void finish_write(const Region& region, u64 number);

// The word that a work of this number reads.
u32 tensor_word(u32 resident, u32 lane, u32 column, u64 number);
void set_tensor_word(u32 resident, u32 lane, u32 column, u32 word);

// Which columns are taken (tensor_alloc.cpp keeps whose). Columns that are freed must have been waited for by the
// calling warp, or by `first_thread`'s.
bool columns_free(u32 resident, u32 column, u32 columns);
void take_columns(u32 resident, u32 column, u32 columns);
void free_columns(u32 resident, u32 column, u32 columns, u32 first_thread);
u32 columns_taken(u32 resident);

// All tcgen05 instructions of a kernel name the same number of blocks, and a pair has one.
void check_group(u32 group, const char* what);

void tensor_memory_reset();
void tensor_alloc_reset();
void tensor_memory_thread_finished();

}  // namespace emulator
