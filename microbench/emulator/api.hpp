// What a kernel's translation unit sees of the emulator: plain declarations, no standard library, so that a kernel
// builds in about a second. runtime/ holds the other side. Addresses of shared memory are the 32-bit ones of PTX.
#pragma once

namespace emulator {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned;
using u64 = unsigned long long;

template <class To, class From>
inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

struct Dim3 {
  u32 x, y, z;
};

// Where the running CUDA thread stands; the scheduler moves the pointer.
struct Place {
  Dim3 thread, block, cluster, in_cluster;
  u32 rank;  // in the cluster
};
extern Place* place;
extern Dim3 block_dim, grid_dim, cluster_dim;
extern u32 cluster_blocks;

// Memory. Every access is checked: bounds, alignment, races, and which proxy wrote last.
u32 shared_base();
void load_shared(u32 address, void* value, u32 bytes);
void store_shared(u32 address, const void* value, u32 bytes);
void load_global(u64 address, void* value, u32 bytes);
void store_global(u64 address, const void* value, u32 bytes);
// The value that one of these loads brings.
template <class T, class Address>
__attribute__((always_inline)) inline T loaded(void (*load)(Address, void*, u32), Address address) {
  T value;
  load(address, &value, sizeof value);
  return value;
}
// Tell of an atomic update of global memory, which the caller makes next; and of __threadfence.
void atomic_access(const void* address, u32 bytes);
void threadfence();

// Synchronisation. `threads` 0 means all of the block.
void barrier_sync(u32 id, u32 threads);
void barrier_arrive(u32 id, u32 threads);
void syncwarp(u32 mask);
void fence_proxy_async();
void fence_mbarrier_init();

// Exchange within a warp: `source` maps a lane to the lane that it reads.
enum class Shuffle { index, up, down, exclusive_or };
u32 shuffle(Shuffle kind, u32 mask, u32 value, u32 operand, u32 width);
u32 ballot(u32 mask, bool predicate);
bool elect();
enum class Reduction { add, min, max, min_signed, max_signed, bit_and, bit_or, bit_xor };
u32 reduce(Reduction how, u32 mask, u32 value);

// What an operand of the tensor cores holds, and what they add up in. s32_sat stays at the ends of its range.
enum class Type { f16, bf16, tf32, e4m3, e5m2, s8, u8, e2m1, e2m3, e3m2, ue8m0, ue4m3 };
enum class Sums { f32, f16, s32, s32_sat };

// Tensor cores and matrix moves of one warp. `name` stands in reports.
void mma_m8n8k4(void* d, const u32* a, const u32* b, bool a_column, bool b_row, bool f32);
void mma_m16n8(const char* name, void* d, const u32* a, const u32* b, u32 k, Type a_type, Type b_type, Sums sums);
void ldmatrix(u32* registers, u32 count, u32 address, bool transposed);
void stmatrix(const u32* registers, u32 count, u32 address, bool transposed);

// Asynchronous copies. cp.async: `used` bytes are read, the rest of `bytes` becomes zero.
void cp_async(u32 shared, u64 global, u32 bytes, u32 used);
void cp_async_commit();
void cp_async_wait(u32 pending);
// Loads: `ranks` is the mask of a multicast, 0 where there is none.
void bulk_load(u32 shared, u64 global, u32 bytes, u32 mbarrier, u32 ranks = 0);
void bulk_store(u64 global, u32 shared, u32 bytes);
enum class Reduce { none, add };
void tensor_load(u32 shared, const void* map, u32 mbarrier, const int* at, u32 rank, u32 ranks = 0);
void tensor_store(const void* map, u32 shared, const int* at, u32 rank, Reduce reduce);
void bulk_commit();
void bulk_wait(u32 pending, bool only_read);

void mbarrier_init(u32 address, u32 arrivals);
void mbarrier_invalidate(u32 address);
void mbarrier_arrive(u32 address, u32 arrivals, u32 expected_bytes);
void mbarrier_expect(u32 address, u32 bytes);
bool mbarrier_test(u32 address, u32 parity);
void mbarrier_wait(u32 address, u32 parity);

// Clusters: the barrier of all their threads, and shared memory of another block.
void cluster_arrive(bool relaxed);
void cluster_wait();
u32 map_shared(u32 address, u32 rank);
void load_cluster(u32 address, void* value, u32 bytes);
void store_cluster(u32 address, const void* value, u32 bytes);
u32 add_cluster(u32 address, u32 value);
void store_async(u32 address, const void* value, u32 bytes, u32 mbarrier);
void bulk_send(u32 to, u32 from, u32 bytes, u32 mbarrier);

// wgmma. `registers` is A in registers, or null: then `a` describes it.
struct Wgmma {
  Type a_type, b_type;
  Sums sums;
  u32 columns;
  bool a_mn, b_mn;
};
void wgmma(const Wgmma& shape, void* d, u64 a, const u32* registers, u64 b, bool accumulate);
void wgmma_fence();
void wgmma_commit();
void wgmma_wait(u32 pending);
void setmaxnreg(u32 count, bool increase);

// tcgen05. `group` is the number of blocks that work together. Addresses of tensor memory are lane << 16 | column.
void tcgen05_alloc(u32 shared, u32 columns, u32 group);
void tcgen05_dealloc(u32 address, u32 columns, u32 group);
void tcgen05_relinquish(u32 group);
void tcgen05_fence_before();
void tcgen05_fence_after();
enum class TensorKind { f16, f8, tf32, i8, mxf8, mxf4, nvf4 };
struct TensorProduct {
  TensorKind kind;
  bool a_in_tensor_memory, accumulate;
  u32 group, instruction;
  u32 scale_a = 0, scale_b = 0;  // of the block-scaled kinds
};
void tcgen05_mma(TensorProduct product, u32 d, u64 a, u64 b);
enum class Spread { once, warps_02_13, warps_01_23, warps_all };
struct TensorCopy {
  u32 rows, row_bytes;
  Spread spread;
  u32 group;
};
void tcgen05_cp(TensorCopy copy, u32 address, u64 from);
void tcgen05_commit(u32 mbarrier, u32 group);
void tcgen05_commit_multicast(u32 mbarrier, u32 ranks, u32 group);
enum class DataShape { of_32x32b, of_16x64b, of_16x128b, of_16x256b, of_16x32bx2 };
struct DataMove {
  DataShape shape;
  u32 split = 0;  // columns between the halves of 16x32bx2
};
void tcgen05_ld(u32* registers, u32 count, DataMove move, u32 address);
void tcgen05_st(const u32* registers, u32 count, DataMove move, u32 address);
void tcgen05_wait_ld();
void tcgen05_wait_st();

// Cycles are counted as scheduling steps, nanoseconds by the host's clock: neither is a time of any GPU.
long long clock64();
u64 globaltimer();
[[noreturn]] void fail(const char* message);

// Bits of a type of 8 or 16 bits, in the lower ones of the word. Too large for fp8 is its largest number.
float widen(u32 bits, Type type);
u16 narrow(float value, Type type);

struct Launch {
  u32 grid[3], block[3], cluster[3];
  u32 smem_bytes, mode, races, argument_count;
  u32 favoured_warps[2], starved_warps[2];  // of a block: the first, and the one behind the last
  u64 seed, switches;
  const u32* argument_bytes;
  void* const* arguments;
  char* error;
  u32 error_bytes;
};
int run(Launch& launch, void (*call)(void* const*), const u32* parameter_bytes, u32 parameter_count);

// Unpacks the arguments and calls the kernel as one CUDA thread.
template <auto Kernel>
struct Caller;
template <class... Parameters, void (*Kernel)(Parameters...)>
struct Caller<Kernel> {
  template <class P>
  static const P& argument(void* const* arguments, u32& next) {
    return *static_cast<const P*>(arguments[next++]);
  }
  static void call(void* const* arguments) {
    u32 next = 0;
    // Braces fix the order of evaluation.
    struct Run {
      Run(Parameters... values) { Kernel(values...); }
    } run{argument<Parameters>(arguments, next)...};
    (void)run;
    (void)next;
  }
  static int launch(Launch& launch) {
    const u32 bytes[] = {sizeof(Parameters)..., 0};
    return run(launch, &call, bytes, sizeof...(Parameters));
  }
};

}  // namespace emulator
