// What wgmma and tcgen05 have in common: how a matrix lies in shared memory.
#pragma once

namespace ptx {

// Which index of a matrix is contiguous: k, or the row of A or the column of B.
enum class Major { K, MN };

// Where byte `offset` of a tile of 128-byte rows lies under the 128-byte swizzle: the 16-byte chunk's number is xored
// with the row's number modulo 8. The tile starts at a multiple of 1024 bytes.
__device__ __forceinline__ unsigned swizzle128(unsigned offset) { return offset ^ ((offset >> 3) & 0x70); }

}  // namespace ptx
