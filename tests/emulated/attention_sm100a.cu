// Attention forward of one head, D = HEAD_DIM (64 or 128), bf16 in, f32 out, in the manner of sm100a. A block takes 128
// rows of Q: four warps compute the softmax, one row a thread; four correct and write O; one thread loads by TMA
// through a ring of two stages; one issues tcgen05.mma. S and O lie in tensor memory, and so does P, over the S that it
// is made of; where P_IN_SHARED is 1, P goes through shared memory.
//
//   columns 0 to 127, 128 to 255    S of even and of odd tiles; P in the first half of each
//   columns 256 to 256 + D - 1      O
//
// `bug` plants one mistake, so that the emulator's tests can see it found. 0 is the right kernel.
#include "ptx/barrier.cuh"
#include "ptx/convert.cuh"
#include "ptx/math.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/memory.cuh"
#include "ptx/tcgen05.cuh"
#include "ptx/tma.cuh"

enum Bug {
  NONE,
  MISSING_FENCE_AFTER_SCORES,
  MISSING_FENCE_BEFORE_P,
  MISSING_FENCE_AFTER_P,
  MISSING_SCORES_WAIT,
  WRONG_SCORES_PHASE,
  MISSING_OUTPUT_WAIT,
  MISSING_LD_WAIT,
  MISSING_ST_WAIT,
  EARLY_RELEASE,
  MISSING_COMMIT,
  OUTPUT_OVER_SCORES,
  TOO_FEW_COLUMNS,
  WRONG_COLUMNS_OF_INSTRUCTION,
  WRONG_TYPE_OF_INSTRUCTION,
  WRONG_MAJOR_OF_INSTRUCTION,
  DESCRIPTOR_OF_WGMMA,
  LANES_OF_ANOTHER_WARP,
  TOO_FEW_EXPECTED,
  TOO_MANY_EXPECTED,
  MISSING_PROXY_FENCE,
  ALLOC_AFTER_RELINQUISH,
  ONE_FACTOR_BARRIER,
  EARLY_DEALLOC,
  MISSING_DEALLOC,
};

constexpr int kRows = 128, kKeys = 128, kStages = 2, kBoxBytes = kRows * 128, kBoxes = HEAD_DIM / 64;
constexpr int kTileBytes = kBoxes * kBoxBytes;  // of Q, K and V: boxes of 128 rows of 64 elements
constexpr unsigned kColumns = 512, kOutput = 256, kThreads = 320, kLoader = 256, kIssuer = 288;

struct Rooms {
  unsigned q = ptx::shared_base(), k = q + kTileBytes, v = k + kStages * kTileBytes;
  unsigned p = v + kStages * kTileBytes, factor = p + P_IN_SHARED * 2 * kBoxBytes;
  // Barriers of one arrival, then those that 128 threads arrive at; two where tiles alternate.
  unsigned q_full = factor + 3 * kRows * 4, k_full = q_full + 8, v_full = k_full + 16, k_empty = v_full + 16;
  unsigned v_empty = k_empty + 16, s_full = v_empty + 16, o_full = s_full + 16;
  unsigned p_full = o_full + 8, factor_full = p_full + 16, corrected = factor_full + 16, sum_full = corrected + 8;
  unsigned tensor_memory = sum_full + 8;
};
constexpr int kSingle = 12, kMany = 6;

__device__ __forceinline__ void load_tile(unsigned to, const ptx::TensorMap* map, unsigned bar, int row) {
  for (int box = 0; box < kBoxes; ++box) ptx::tensor_load(to + box * kBoxBytes, map, bar, box * 64, row);
}

__device__ __forceinline__ void load(const Rooms& at, const ptx::TensorMap* q, const ptx::TensorMap* k,
                                     const ptx::TensorMap* v, int tiles, int bug) {
  ptx::mbarrier_arrive_expect(at.q_full, kTileBytes);
  load_tile(at.q, q, at.q_full, static_cast<int>(blockIdx.x) * kRows);
  const unsigned expected = bug == TOO_FEW_EXPECTED    ? kTileBytes / 2
                            : bug == TOO_MANY_EXPECTED ? 2 * kTileBytes
                                                       : kTileBytes;
  for (int tile = 0; tile < tiles; ++tile) {
    const int stage = tile % kStages, before = (tile / kStages - 1) & 1;
    if (tile >= kStages) ptx::mbarrier_wait(at.k_empty + 8 * stage, before);
    ptx::mbarrier_arrive_expect(at.k_full + 8 * stage, expected);
    load_tile(at.k + stage * kTileBytes, k, at.k_full + 8 * stage, tile * kKeys);
    if (tile >= kStages) ptx::mbarrier_wait(at.v_empty + 8 * stage, before);
    ptx::mbarrier_arrive_expect(at.v_full + 8 * stage, kTileBytes);
    load_tile(at.v + stage * kTileBytes, v, at.v_full + 8 * stage, tile * kKeys);
  }
}

__device__ __forceinline__ unsigned scores_at(unsigned memory, int tile) { return memory + tile % 2 * kKeys; }

__device__ __forceinline__ void multiply_scores(const Rooms& at, unsigned memory, int tile, int bug) {
  const int stage = tile % kStages;
  unsigned instruction = ptx::tcgen05_instruction(ptx::Operand::bf16, ptx::Operand::bf16, kRows, kKeys);
  if (bug == WRONG_COLUMNS_OF_INSTRUCTION)
    instruction = ptx::tcgen05_instruction(ptx::Operand::bf16, ptx::Operand::bf16, kRows, kKeys / 2);
  if (bug == WRONG_TYPE_OF_INSTRUCTION)
    instruction = ptx::tcgen05_instruction(ptx::Operand::f16, ptx::Operand::bf16, kRows, kKeys);
  ptx::mbarrier_wait(at.k_full + 8 * stage, tile / kStages & 1);
  for (int i = 0; i < HEAD_DIM / 16; ++i) {
    const unsigned box = i / 4 * kBoxBytes;
    const unsigned long long q = ptx::tcgen05_tile(at.q + box) + ptx::tcgen05_slice(i % 4);
    unsigned long long k = ptx::tcgen05_tile(at.k + stage * kTileBytes + box) + ptx::tcgen05_slice(i % 4);
    if (bug == DESCRIPTOR_OF_WGMMA) k &= ~(1ull << 46);
    ptx::tcgen05_mma_f16_ss(scores_at(memory, tile), q, k, instruction, i > 0);
  }
  if (bug == EARLY_RELEASE)
    ptx::mbarrier_arrive(at.k_empty + 8 * stage);
  else
    ptx::tcgen05_commit(at.k_empty + 8 * stage);
  ptx::tcgen05_commit(at.s_full + tile % 2 * 8);
}

// O += P * V. V lies as keys x D, so D is contiguous: B is MN-major; the next 64 of D are the next box, the next eight
// keys 1024 bytes further on.
__device__ __forceinline__ void multiply_values(const Rooms& at, unsigned memory, unsigned output, int tile, int bug) {
  const int stage = tile % kStages;
  const ptx::Major major = bug == WRONG_MAJOR_OF_INSTRUCTION ? ptx::Major::K : ptx::Major::MN;
  const unsigned instruction =
      ptx::tcgen05_instruction(ptx::Operand::bf16, ptx::Operand::bf16, kRows, HEAD_DIM, ptx::Major::K, major);
  ptx::mbarrier_wait(at.v_full + 8 * stage, tile / kStages & 1);
  for (int i = 0; i < kKeys / 16; ++i) {
    const unsigned long long v = ptx::tcgen05_matrix(at.v + stage * kTileBytes + i * 2048, kBoxBytes, 1024, 128);
    if (P_IN_SHARED) {
      const unsigned long long p = ptx::tcgen05_tile(at.p + i / 4 * kBoxBytes) + ptx::tcgen05_slice(i % 4);
      ptx::tcgen05_mma_f16_ss(output, p, v, instruction, tile + i > 0);
    } else {
      ptx::tcgen05_mma_f16_ts(output, scores_at(memory, tile) + i * 8, v, instruction, tile + i > 0);
    }
  }
  if (bug != MISSING_COMMIT) ptx::tcgen05_commit(at.v_empty + 8 * stage);
  ptx::tcgen05_commit(at.o_full);
}

__device__ __forceinline__ void issue(const Rooms& at, unsigned memory, unsigned output, int tiles, int bug) {
  ptx::mbarrier_wait(at.q_full, 0);
  multiply_scores(at, memory, 0, bug);
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) multiply_scores(at, memory, tile + 1, bug);
    ptx::mbarrier_wait(at.p_full + tile % 2 * 8, tile / 2 & 1);
    if (tile > 0) ptx::mbarrier_wait(at.corrected, (tile - 1) & 1);
    if (bug != MISSING_FENCE_AFTER_P) ptx::tcgen05_fence_after();
    multiply_values(at, memory, output, tile, bug);
  }
}

// This thread's row of P, as words of two keys: to tensor memory, or to two swizzled boxes of shared memory.
__device__ __forceinline__ void store_p(const Rooms& at, unsigned to, const unsigned (&p)[64], int bug) {
  if (P_IN_SHARED) {
    for (int chunk = 0; chunk < 16; ++chunk) {
      const unsigned offset = chunk / 8 * kBoxBytes + ptx::swizzle128(threadIdx.x * 128 + chunk % 8 * 16);
      const unsigned* words = p + 4 * chunk;
      ptx::store_shared4(at.p + offset, {words[0], words[1], words[2], words[3]});
    }
    if (bug != MISSING_PROXY_FENCE) ptx::fence_proxy_async();
  } else {
    ptx::tcgen05_st_32x32b(to, p);
    if (bug != MISSING_ST_WAIT) ptx::tcgen05_wait_st();
  }
}

__device__ __forceinline__ void softmax(const Rooms& at, unsigned memory, int tiles, float scale_log2, int bug) {
  const unsigned lanes = bug == LANES_OF_ANOTHER_WARP ? 0 : threadIdx.x / 32 * 32 << 16;
  float most = -1e30f, sum = 0.f;
  for (int tile = 0; tile < tiles; ++tile) {
    const unsigned from = scores_at(memory, tile) + lanes;
    if (bug != MISSING_SCORES_WAIT)
      ptx::mbarrier_wait(at.s_full + tile % 2 * 8, (tile / 2 & 1) ^ (bug == WRONG_SCORES_PHASE));
    if (bug != MISSING_FENCE_AFTER_SCORES) ptx::tcgen05_fence_after();
    unsigned scores[kKeys];
    ptx::tcgen05_ld_32x32b(scores, from);
    if (bug != MISSING_LD_WAIT) ptx::tcgen05_wait_ld();

    float top = most;
    for (int i = 0; i < kKeys; ++i) top = fmaxf(top, __uint_as_float(scores[i]) * scale_log2);
    const float factor = ptx::ex2(most - top);
    most = top;
    sum *= factor;
    if (tile > 0) {
      ptx::store_shared(at.factor + (tile % 2 * kRows + threadIdx.x) * 4, __float_as_uint(factor));
      ptx::mbarrier_arrive(at.factor_full + (bug == ONE_FACTOR_BARRIER ? 0 : tile % 2 * 8));
    }

    unsigned p[kKeys / 2];
    for (int i = 0; i < kKeys / 2; ++i) {
      const float left = ptx::ex2(__uint_as_float(scores[2 * i]) * scale_log2 - most);
      const float right = ptx::ex2(__uint_as_float(scores[2 * i + 1]) * scale_log2 - most);
      sum += left + right;
      p[i] = ptx::pack_bf16(left, right);
    }
    // P in shared memory has one room: the product before must have read it.
    if (P_IN_SHARED && tile > 0) ptx::mbarrier_wait(at.o_full, (tile - 1) & 1);
    store_p(at, from, p, bug);
    if (bug != MISSING_FENCE_BEFORE_P) ptx::tcgen05_fence_before();
    ptx::mbarrier_arrive(at.p_full + tile % 2 * 8);
  }
  ptx::store_shared(at.factor + (2 * kRows + threadIdx.x) * 4, __float_as_uint(1.f / sum));
  ptx::mbarrier_arrive(bug == ONE_FACTOR_BARRIER ? at.factor_full : at.sum_full);
}

// Scale O by this row's factor, 32 columns at a time; the last time, write it out.
__device__ __forceinline__ void scale(unsigned output, float factor, float* row) {
  for (int first = 0; first < HEAD_DIM; first += 32) {
    unsigned o[32];
    ptx::tcgen05_ld_32x32b(o, output + first);
    ptx::tcgen05_wait_ld();
    for (int i = 0; i < 32; ++i) o[i] = __float_as_uint(__uint_as_float(o[i]) * factor);
    if (!row) ptx::tcgen05_st_32x32b(output + first, o);
    for (int i = 0; row && i < 32; ++i) row[first + i] = __uint_as_float(o[i]);
  }
  if (!row) ptx::tcgen05_wait_st();
}

__device__ __forceinline__ void correct(const Rooms& at, unsigned output, float* out, int tiles, int bug) {
  const int row = threadIdx.x % 128;
  const unsigned mine = output + (row / 32 * 32 << 16);
  for (int tile = 1; tile <= tiles; ++tile) {
    const bool last = tile == tiles;
    // Two barriers for the factors and one for the sums: a phase more behind than one is not seen to have passed.
    if (bug == ONE_FACTOR_BARRIER)
      ptx::mbarrier_wait(at.factor_full, (tile - 1) & 1);
    else if (last)
      ptx::mbarrier_wait(at.sum_full, 0);
    else
      ptx::mbarrier_wait(at.factor_full + tile % 2 * 8, (tile - 1) / 2 & 1);
    if (bug != MISSING_OUTPUT_WAIT) ptx::mbarrier_wait(at.o_full, (tile - 1) & 1);
    ptx::tcgen05_fence_after();
    const float factor = __uint_as_float(ptx::load_shared(at.factor + ((last ? 2 : tile % 2) * kRows + row) * 4));
    float* to = last ? out + (static_cast<long long>(blockIdx.x) * kRows + row) * HEAD_DIM : nullptr;
    if (last || __any_sync(~0u, factor < 1.f)) scale(mine, factor, to);
    ptx::tcgen05_fence_before();
    if (!last) ptx::mbarrier_arrive(at.corrected);
  }
}

__device__ __forceinline__ void prepare(const Rooms& at, int bug) {
  if (threadIdx.x == kLoader) {
    for (int i = 0; i < kSingle; ++i) ptx::mbarrier_init(at.q_full + 8 * i, 1);
    for (int i = 0; i < kMany; ++i) ptx::mbarrier_init(at.p_full + 8 * i, kRows);
    ptx::fence_mbarrier_init();
  }
  if (threadIdx.x / 32 == 0) {
    if (bug == ALLOC_AFTER_RELINQUISH) ptx::tcgen05_relinquish();
    ptx::tcgen05_alloc(at.tensor_memory, bug == TOO_FEW_COLUMNS ? kColumns / 2 : kColumns);
    ptx::tcgen05_relinquish();
  }
  __syncthreads();
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    attention_sm100a(const __grid_constant__ ptx::TensorMap q, const __grid_constant__ ptx::TensorMap k,
                     const __grid_constant__ ptx::TensorMap v, float* out, int keys, float scale_log2, int planted) {
#ifdef SMSCOPE_EMULATED
  const int bug = planted;
#else
  constexpr int bug = NONE;
#endif
  const Rooms at;
  prepare(at, bug);
  const unsigned memory = ptx::load_shared(at.tensor_memory);
  const unsigned output = memory + (bug == OUTPUT_OVER_SCORES ? 128 : kOutput);
  const int tiles = keys / kKeys;
  if (threadIdx.x == kLoader) load(at, &q, &k, &v, tiles, bug);
  if (threadIdx.x == kIssuer) issue(at, memory, output, tiles, bug);
  if (threadIdx.x < 128) softmax(at, memory, tiles, scale_log2, bug);
  if (threadIdx.x >= 128 && threadIdx.x < kLoader) correct(at, output, out, tiles, bug);
  __syncwarp();
  if (bug != EARLY_DEALLOC) __syncthreads();
  if (threadIdx.x / 32 == 0 && bug != MISSING_DEALLOC) ptx::tcgen05_dealloc(memory, kColumns);
}
