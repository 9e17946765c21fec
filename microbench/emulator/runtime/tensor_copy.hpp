// How bulk copies start, and the tensor map as the emulator's host side writes it (tensor_map.py).
#pragma once
#include "emulator/runtime/block.hpp"

namespace emulator {

// A copy into shared memory that completes `bytes` on an mbarrier of the same block, and one out of it that a bulk
// group waits for. `ranks`: the blocks of the cluster that get the copy, each at the same offset and with its own
// mbarrier there; 0: the one that the address names. `action` gets the address to write to.
void start_load(u32 shared, u32 bytes, u32 mbarrier, u32 ranks, const std::function<void(u32)>& action,
                const char* what);
void start_store(u32 shared, u32 bytes, std::function<void()> action, const char* what);

enum class Element : u8 { u8, u16, u32, f16, bf16, f32 };

struct TensorMap {
  u64 magic, address;
  u64 extents[5];  // elements, the contiguous dimension first
  u64 strides[4];  // bytes between neighbours in dimensions 1 to 4
  u16 box[5];      // elements
  u8 rank, element_bytes;
  Element element;
  u8 swizzle;      // 0, 32, 64, 128 bytes
  u8 nan_outside;  // out-of-bounds elements read as NaN, not as zero
  u8 unused[25];
};
static_assert(sizeof(TensorMap) == 128, "a tensor map is an opaque 128 bytes");
constexpr u64 kTensorMapMagic = 0x70616D726F736E74;

// The address that a 16-byte chunk moves to: bits 4 to 6 are xored with bits 7 to 9, as many as the span has.
inline u32 swizzled(u32 address, u32 span_bytes) { return address ^ ((address >> 3) & (span_bytes - 1) & 0x70); }

}  // namespace emulator
