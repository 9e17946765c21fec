// The tcgen05 wrappers by themselves: 128 threads show what lies where in tensor memory. The tests lay matrices out.
#include "ptx/memory.cuh"
#include "ptx/tcgen05.cuh"

constexpr unsigned kColumns = 512;

__device__ __forceinline__ unsigned my_lanes() { return threadIdx.x / 32 * 32 << 16; }

__device__ __forceinline__ unsigned open_memory(unsigned slot) {
  if (threadIdx.x / 32 == 0) {
    ptx::tcgen05_alloc(slot, kColumns);
    ptx::tcgen05_relinquish();
  }
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(slot + 8, 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  return ptx::load_shared(slot);
}

__device__ __forceinline__ void close_memory(unsigned memory) {
  __syncthreads();
  if (threadIdx.x / 32 == 0) ptx::tcgen05_dealloc(memory, kColumns);
}

// An image of 128 lanes x `columns`, one word at a time.
__device__ __forceinline__ void write_image(unsigned memory, const unsigned* image, int columns) {
  for (int column = 0; column < columns; ++column) {
    const unsigned word[1] = {image[threadIdx.x * columns + column]};
    ptx::tcgen05_st_32x32b(memory + my_lanes() + column, word);
  }
  ptx::tcgen05_wait_st();
}

__device__ __forceinline__ void read_image(unsigned memory, unsigned* image, int columns) {
  for (int column = 0; column < columns; ++column) {
    unsigned word[1];
    ptx::tcgen05_ld_32x32b(word, memory + my_lanes() + column);
    ptx::tcgen05_wait_ld();
    image[threadIdx.x * columns + column] = word[0];
  }
}

// What the tensor cores left is there, and ordered before what this thread does next.
__device__ __forceinline__ void wait_for_tensor_cores(unsigned bar) {
  ptx::mbarrier_wait(bar, 0);
  ptx::tcgen05_fence_after();
}

__device__ __forceinline__ void fill_shared(unsigned address, const unsigned* from, int words) {
  for (int i = threadIdx.x; i < words; i += blockDim.x) ptx::store_shared(address + 4 * i, from[i]);
  ptx::fence_proxy_async();
}

#ifdef SHAPE
#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
// Load COUNT registers a thread from a known image, store their complements in the same place, show the image.
extern "C" __global__ void __launch_bounds__(128, 1)
    move(const unsigned* image, int columns, int lane, unsigned* loaded, unsigned* stored) {
  const unsigned memory = open_memory(ptx::shared_base()),
                 at = memory + my_lanes() + (static_cast<unsigned>(lane) << 16);
  write_image(memory, image, columns);
  unsigned words[COUNT];
  ptx::JOIN(tcgen05_ld_, SHAPE)(words, at);
  ptx::tcgen05_wait_ld();
  for (int i = 0; i < COUNT; ++i) {
    loaded[threadIdx.x * COUNT + i] = words[i];
    words[i] = ~words[i];
  }
  ptx::JOIN(tcgen05_st_, SHAPE)(at, words);
  ptx::tcgen05_wait_st();
  read_image(memory, stored, columns);
  close_memory(memory);
}
#endif

#ifdef KIND
#define JOIN3(a, b, c) a##b##c
#define MMA(kind, source) JOIN3(tcgen05_mma_, kind, source)
constexpr unsigned kColumnOfA = 256, kColumnOfScales = 272, kScaleBytes = 512;

#ifdef SCALE
constexpr unsigned kInstruction =
    ptx::tcgen05_scaled_instruction(ptx::Operand::A_TYPE, ptx::Operand::B_TYPE, M, N, ptx::Scale::SCALE, A_BYTE, B_BYTE,
                                    ptx::Major::A_MAJOR, ptx::Major::B_MAJOR);
#define SCALES memory + kColumnOfScales, memory + kColumnOfScales + 4,
#else
constexpr unsigned kInstruction = ptx::tcgen05_instruction(ptx::Operand::A_TYPE, ptx::Operand::B_TYPE, M, N,
                                                           ptx::Major::A_MAJOR, ptx::Major::B_MAJOR, ptx::Sum::SUM);
#define SCALES
#endif

// d += a * b: a and b as images of shared memory with the strides of their descriptors, or `a` as an image of 8 columns
// of tensor memory where FROM_TENSOR_MEMORY is 1; d as an image of N columns. Of scaled kinds `scales` are 32 rows of 16
// bytes for 128 rows of A, then twice as many for 256 columns of B; others do not read it.
extern "C" __global__ void __launch_bounds__(128, 1)
    product(const unsigned* a, int a_words, int a_leading, int a_stride, const unsigned* b, int b_words, int b_leading,
            int b_stride, const unsigned* scales, unsigned* d, int accumulate) {
  const unsigned a_tile = ptx::shared_base(), b_tile = a_tile + 65536, slot = b_tile + 65536;
  const unsigned memory = open_memory(slot);
  fill_shared(b_tile, b, b_words);
#ifdef SCALE
  fill_shared(slot + 128, scales, 3 * kScaleBytes / 4);
#endif
  if (FROM_TENSOR_MEMORY)
    write_image(memory + kColumnOfA, a, 8);
  else
    fill_shared(a_tile, a, a_words);
  write_image(memory, d, N);
  ptx::tcgen05_fence_before();
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::tcgen05_fence_after();
    const unsigned long long from = ptx::tcgen05_matrix(b_tile, b_leading, b_stride, SWIZZLE);
#ifdef SCALE
    for (unsigned i = 0; i < 3; ++i)
      ptx::tcgen05_cp_32x128b(memory + kColumnOfScales + 4 * i,
                              ptx::tcgen05_matrix(slot + 128 + i * kScaleBytes, 0, 128, 0));
#endif
#if FROM_TENSOR_MEMORY
    ptx::MMA(KIND, _ts)(memory, memory + kColumnOfA, from, kInstruction, SCALES accumulate);
#else
    ptx::MMA(KIND, _ss)(memory, ptx::tcgen05_matrix(a_tile, a_leading, a_stride, SWIZZLE), from, kInstruction,
                        SCALES accumulate);
#endif
    ptx::tcgen05_commit(slot + 8);
  }
  wait_for_tensor_cores(slot + 8);
  read_image(memory, d, N);
  close_memory(memory);
}
#endif

#ifdef COPY
// Copy rows of shared memory to tensor memory, then show it.
extern "C" __global__ void __launch_bounds__(128, 1)
    copy(const unsigned* from, int words, int leading, int stride, unsigned* image, int columns) {
  const unsigned tile = ptx::shared_base(), slot = tile + 65536, memory = open_memory(slot);
  fill_shared(tile, from, words);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::COPY(memory, ptx::tcgen05_matrix(tile, leading, stride, SWIZZLE));
    ptx::tcgen05_commit(slot + 8);
  }
  wait_for_tensor_cores(slot + 8);
  read_image(memory, image, columns);
  close_memory(memory);
}
#endif

#ifdef DESCRIBE
// Both descriptors as 64-bit words.
extern "C" __global__ void describe(unsigned long long* made, int m, int n, int leading, int stride, int swizzle) {
  made[0] = ptx::tcgen05_instruction(ptx::Operand::A_TYPE, ptx::Operand::B_TYPE, m, n, ptx::Major::A_MAJOR,
                                     ptx::Major::B_MAJOR);
#ifdef SCALE
  made[0] = ptx::tcgen05_scaled_instruction(ptx::Operand::A_TYPE, ptx::Operand::B_TYPE, m, n, ptx::Scale::SCALE);
#endif
  made[1] = ptx::tcgen05_matrix(0, leading, stride, swizzle);
}
#endif
