// One wrapper a kernel, one seed a block: registers and shared memory as they are, so that a GPU and the emulator can
// be given the same bytes. Group by group, chosen by a define; the files beside this one lay the inputs out.
#include "ptx/memory.cuh"

template <unsigned Count, class T>
__device__ __forceinline__ void take(T (&registers)[Count], const T* from) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned i = 0; i < Count; ++i) registers[i] = from[thread * Count + i];
}

template <unsigned Count, class T>
__device__ __forceinline__ void give(T* to, const T (&registers)[Count]) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned i = 0; i < Count; ++i) to[thread * Count + i] = registers[i];
}

// The words of this block, to and from shared memory.
__device__ __forceinline__ void fill_shared(unsigned address, const unsigned* from, int words) {
  for (int i = threadIdx.x; i < words; i += blockDim.x)
    ptx::store_shared(address + 4 * i, from[blockIdx.x * words + i]);
}

__device__ __forceinline__ void read_shared(unsigned* to, unsigned address, int words) {
  for (int i = threadIdx.x; i < words; i += blockDim.x) to[blockIdx.x * words + i] = ptx::load_shared(address + 4 * i);
}

#ifdef MMA
#include "ptx/mma_sm70.cuh"
#include "ptx/mma_sync.cuh"
extern "C" __global__ void mma(const unsigned* a, const unsigned* b, D_TYPE* d) {
  unsigned fa[A_WORDS], fb[B_WORDS];
  D_TYPE fd[D_WORDS];
  take(fa, a);
  take(fb, b);
  take(fd, d);
  ptx::MMA(fd, fa, fb);
  give(d, fd);
}
#endif

#ifdef MATRICES
#include "ptx/ldmatrix.cuh"
// rows: a byte offset into 1024 bytes of shared memory for each lane.
extern "C" __global__ void load_matrices(const unsigned* image, const unsigned* rows, unsigned* plain,
                                         unsigned* trans) {
  fill_shared(ptx::shared_base(), image, 256);
  __syncthreads();
  const unsigned row = ptx::shared_base() + rows[blockIdx.x * 32 + threadIdx.x];
  unsigned fragment[MATRICES];
  ptx::ldmatrix(fragment, row);
  give(plain, fragment);
  ptx::ldmatrix_trans(fragment, row);
  give(trans, fragment);
}

#if defined(SMSCOPE_EMULATED) || __CUDA_ARCH__ >= 900
extern "C" __global__ void store_matrices(const unsigned* s, const unsigned* rows, unsigned* plain, unsigned* trans) {
  const unsigned image = ptx::shared_base(), row = image + rows[blockIdx.x * 32 + threadIdx.x];
  unsigned fragment[MATRICES];
  take(fragment, s);
  ptx::stmatrix(row, fragment);
  __syncthreads();
  read_shared(plain, image, 32 * MATRICES);
  __syncthreads();
  ptx::stmatrix_trans(row, fragment);
  __syncthreads();
  read_shared(trans, image, 32 * MATRICES);
}
#endif
#endif

#ifdef RANK
#include "ptx/tma.cuh"
// Load a box, show its image in shared memory, store it through a second map, and add it through a third. One seed a
// launch: the maps are parameters. at: RANK coordinates for the load, and as many for the others, innermost first.
extern "C" __global__ void copy_box(const __grid_constant__ ptx::TensorMap from,
                                    const __grid_constant__ ptx::TensorMap to,
                                    const __grid_constant__ ptx::TensorMap sum, const int* at, unsigned* image,
                                    int words) {
  const unsigned box = ptx::shared_base(), bar = box + 32768;
#if RANK == 1
#define COORDINATES(at) (at)[0]
#elif RANK == 2
#define COORDINATES(at) (at)[0], (at)[1]
#elif RANK == 3
#define COORDINATES(at) (at)[0], (at)[1], (at)[2]
#elif RANK == 4
#define COORDINATES(at) (at)[0], (at)[1], (at)[2], (at)[3]
#else
#define COORDINATES(at) (at)[0], (at)[1], (at)[2], (at)[3], (at)[4]
#endif
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(bar, 1);
    ptx::fence_mbarrier_init();
    ptx::mbarrier_arrive_expect(bar, words * 4);
    ptx::tensor_load(box, &from, bar, COORDINATES(at));
  }
  __syncthreads();
  ptx::mbarrier_wait(bar, 0);
  read_shared(image, box, words);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::tensor_store(&to, box, COORDINATES(at + RANK));
    if (ADDS) ptx::tensor_add(&sum, box, COORDINATES(at + RANK));
    ptx::bulk_commit();
    ptx::bulk_wait<0>();
  }
}
#endif

#ifdef BYTES
#include "ptx/tma.cuh"
// There and back by bulk copies. The expectation comes apart from the arrival, and the mbarrier is used twice.
extern "C" __global__ void copy_bytes(const unsigned* from, unsigned* to, int words) {
  const unsigned room = ptx::shared_base(), bar = room + 32768, half = words * 2;
  const unsigned* mine = from + blockIdx.x * words;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(bar, 1);
    ptx::fence_mbarrier_init();
    ptx::mbarrier_expect(bar, half);
    ptx::bulk_load(room, mine, half, bar);
    ptx::mbarrier_arrive(bar);
    while (!ptx::mbarrier_test(bar, 0)) {
    }
    ptx::mbarrier_arrive_expect(bar, half);
    ptx::bulk_load(room + half, mine + words / 2, half, bar);
    ptx::mbarrier_wait(bar, 1);
    ptx::bulk_store(to + blockIdx.x * words, room, words * 4);
    ptx::bulk_commit();
    ptx::bulk_wait_read<0>();
    ptx::mbarrier_invalidate(bar);
  }
}
#endif

#ifdef WAYS
#include "ptx/barrier.cuh"
#include "ptx/cp_async.cuh"
// 16 bytes a thread from global to shared memory in seven ways, and back in three, by another thread. 128 threads.
constexpr unsigned kWays = 7, kWayBytes = 128 * 16;
extern "C" __global__ void move_words(const unsigned* from, unsigned* to) {
  const unsigned thread = threadIdx.x, room = ptx::shared_base(), mine = room + thread * 16;
  const unsigned* source = from + (blockIdx.x * 128 + thread) * 4;
  ptx::cp_async16(mine, source);
  ptx::cp_async16(mine + kWayBytes, source, thread % 5 * 4);
  for (int i = 0; i < 2; ++i) ptx::cp_async<8>(mine + 2 * kWayBytes + 8 * i, source + 2 * i);
  ptx::cp_async_commit();
  for (int i = 0; i < 4; ++i) ptx::cp_async<4>(mine + 3 * kWayBytes + 4 * i, source + i);
  ptx::cp_async_commit();
  const ptx::u64 address = (ptx::u64)source;
  ptx::store_shared4(mine + 4 * kWayBytes, ptx::load4(address));
  ptx::store_shared4(mine + 5 * kWayBytes, ptx::load4_cg(address));
  for (int i = 0; i < 2; ++i) {
    const ptx::u64 pair = ptx::load(address + 8 * i);
    ptx::store_shared(mine + 6 * kWayBytes + 8 * i, (unsigned)pair);
    ptx::store_shared(mine + 6 * kWayBytes + 8 * i + 4, (unsigned)(pair >> 32));
  }
  ptx::cp_async_wait<1>();
  ptx::cp_async_wait<0>();
  ptx::barrier_sync(1, 128);
  for (unsigned way = 0; way < kWays; ++way) {
    const unsigned theirs = room + way * kWayBytes + (127 - thread) * 16;
    ptx::vec4 found;
    if (way % 3 == 0) {
      found = ptx::load_shared4(theirs);
    } else if (way % 3 == 1) {
      const ptx::u64 low = ptx::load_shared2(theirs), high = ptx::load_shared2(theirs + 8);
      found = {(unsigned)low, (unsigned)(low >> 32), (unsigned)high, (unsigned)(high >> 32)};
    } else {
      found = {ptx::load_shared(theirs), ptx::load_shared(theirs + 4), ptx::load_shared(theirs + 8),
               ptx::load_shared(theirs + 12)};
    }
    ptx::store4((ptx::u64)(to + ((blockIdx.x * kWays + way) * 128 + thread) * 4), found);
  }
  // Two warps hand over to the others and go on; these wait.
  ptx::barrier_sync(1, 128);
  if (thread < 64) {
    ptx::store_shared(room + 4 * thread, ptx::load_shared(room + 4 * thread) + 1);
    ptx::barrier_arrive(2, 128);
  } else {
    ptx::barrier_sync(2, 128);
    to[((blockIdx.x * kWays) * 128 + thread) * 4] = ptx::load_shared(room + 4 * (127 - thread));
  }
}
#endif

#ifdef ARITHMETIC
#include "ptx/convert.cuh"
#include "ptx/math.cuh"
extern "C" __global__ void arithmetic(const float* x, const float* y, const float* z, float* product, float* power,
                                      unsigned* halves, unsigned* brains) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  product[i] = ptx::ffma(x[i], y[i], z[i]);
  power[i] = ptx::ex2(x[i]);
  halves[i] = ptx::pack_f16(x[i], y[i]);
  brains[i] = ptx::pack_bf16(x[i], y[i]);
}
#endif

#ifdef WGMMA
#include "ptx/wgmma.cuh"
// d += a * b of one k16; a and b as images of shared memory, and the strides of their descriptors.
extern "C" __global__ void __launch_bounds__(128, 1)
    wgmma(const unsigned* a, int a_words, int a_leading, int a_stride, const unsigned* b, int b_words, int b_leading,
          int b_stride, int swizzle, const unsigned* a_registers, float* d) {
  const unsigned a_tile = ptx::shared_base(), b_tile = a_tile + 32768;
  fill_shared(a_tile, a, a_words);
  fill_shared(b_tile, b, b_words);
  ptx::fence_proxy_async();
  __syncthreads();
  float fd[COLUMNS / 2];
  unsigned fa[4];
  take(fd, static_cast<const float*>(d));
  take(fa, a_registers);
  const unsigned long long db = ptx::matrix_descriptor(b_tile, b_leading, b_stride, swizzle);
  const unsigned long long da = ptx::matrix_descriptor(a_tile, a_leading, a_stride, swizzle);
  ptx::wgmma_fence();
#ifdef FROM_REGISTERS
  ptx::WGMMA<ptx::Major::B_MAJOR>(fd, fa, db, 1);
  (void)da;
#else
  ptx::WGMMA<ptx::Major::A_MAJOR, ptx::Major::B_MAJOR>(fd, da, db, 1);
#endif
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
  give(d, fd);
}
#endif
