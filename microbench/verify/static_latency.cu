// One chain of LENGTH dependent instructions of one kind, to read off the stall counts that ptxas schedules between
// them. Never launched: only its SASS is looked at. A chain is its state d, which every step reads and writes, and
// operands in, which stay as they are; all come from memory and d lives out, so nothing is folded or dropped.
#include "ptx/clock.cuh"

template <class State, int States, class Operand, int Operands>
struct Chain {
  State d[States];
  Operand in[Operands];
};

#define CHAIN(NAME, STATE, STATES, OPERAND, OPERANDS, ...)                \
  struct NAME : Chain<STATE, STATES, OPERAND, OPERANDS> {                 \
    __device__ __forceinline__ void step() { asm volatile(__VA_ARGS__); } \
  };
// d = operation(d, in[0], in[1]), or of as many as the instruction takes.
#define BINARY(NAME, TYPE, LETTER, PTX) \
  CHAIN(NAME, TYPE, 1, TYPE, 1, PTX " %0, %0, %1;" : "+" LETTER(d[0]) : LETTER(in[0]))
#define TERNARY(NAME, TYPE, LETTER, PTX, REST) \
  CHAIN(NAME, TYPE, 1, TYPE, 2, PTX " %0, %0, %1, %2" REST ";" : "+" LETTER(d[0]) : LETTER(in[0]), LETTER(in[1]))

BINARY(Fadd, float, "f", "add.rn.f32")
BINARY(Fmul, float, "f", "mul.rn.f32")
TERNARY(Ffma, float, "f", "fma.rn.f32", "")
BINARY(Fmnmx, float, "f", "max.f32")
TERNARY(Imad, int, "r", "mad.lo.s32", "")
TERNARY(Lop3, unsigned, "r", "lop3.b32", ", 0x96")
TERNARY(Shf, unsigned, "r", "shf.l.wrap.b32", "")
TERNARY(Prmt, unsigned, "r", "prmt.b32", "")
BINARY(Hadd2, unsigned, "r", "add.rn.f16x2")
TERNARY(Hfma2, unsigned, "r", "fma.rn.f16x2", "")
BINARY(Dadd, double, "d", "add.rn.f64")
TERNARY(Dfma, double, "d", "fma.rn.f64", "")
CHAIN(Ex2, float, 1, float, 1, "ex2.approx.ftz.f32 %0, %0;" : "+f"(d[0]))
CHAIN(Shfl, unsigned, 1, unsigned, 1, "shfl.sync.bfly.b32 %0, %0, 1, 0x1f, 0xffffffff;" : "+r"(d[0]))

#define D4(LETTER) "+" LETTER(d[0]), "+" LETTER(d[1]), "+" LETTER(d[2]), "+" LETTER(d[3])
#define D8(LETTER) D4(LETTER), "+" LETTER(d[4]), "+" LETTER(d[5]), "+" LETTER(d[6]), "+" LETTER(d[7])
// A lane holds three or six 32-bit words of A and B together, and four of the accumulator.
#define MMA_3(NAME, STATE, LETTER, SHAPE, TYPES)                                   \
  CHAIN(NAME, STATE, 4, unsigned, 3,                                               \
        "mma.sync.aligned." SHAPE ".row.col." TYPES                                \
        " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};" : D4(LETTER) : "r"(in[0]), \
        "r"(in[1]), "r"(in[2]))
#define MMA_6(NAME, STATE, LETTER, SHAPE, TYPES)                                            \
  CHAIN(NAME, STATE, 4, unsigned, 6,                                                        \
        "mma.sync.aligned." SHAPE ".row.col." TYPES                                         \
        " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : D4(LETTER) : "r"(in[0]), \
        "r"(in[1]), "r"(in[2]), "r"(in[3]), "r"(in[4]), "r"(in[5]))

CHAIN(MmaM8n8k4, float, 8, unsigned, 4,
      "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9}, {%10,%11}, "
      "{%0,%1,%2,%3,%4,%5,%6,%7};" : D8("f") : "r"(in[0]),
      "r"(in[1]), "r"(in[2]), "r"(in[3]))
MMA_3(MmaM16n8k8, float, "f", "m16n8k8", "f32.f16.f16.f32")
MMA_6(MmaM16n8k16, float, "f", "m16n8k16", "f32.f16.f16.f32")
MMA_6(MmaM16n8k16Bf16, float, "f", "m16n8k16", "f32.bf16.bf16.f32")
MMA_6(MmaM16n8k8Tf32, float, "f", "m16n8k8", "f32.tf32.tf32.f32")
MMA_6(MmaM16n8k32S8, int, "r", "m16n8k32", "s32.s8.s8.s32")
MMA_6(MmaM16n8k32E4m3, float, "f", "m16n8k32", "f32.e4m3.e4m3.f32")
CHAIN(MmaM8n8k4F64, double, 2, double, 2,
      "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+d"(d[0]),
      "+d"(d[1]) : "d"(in[0]), "d"(in[1]))

// Value i of lane l is values[32 * i + l].
template <class T, int Count>
__device__ __forceinline__ void load(T (&values)[Count], const void* from) {
#pragma unroll
  for (int i = 0; i < Count; ++i) ptx::settle(values[i] = static_cast<const T*>(from)[32 * i + threadIdx.x]);
}

template <class T, int Count>
__device__ __forceinline__ void store(const T (&values)[Count], void* to) {
#pragma unroll
  for (int i = 0; i < Count; ++i) static_cast<T*>(to)[32 * i + threadIdx.x] = values[i];
}

extern "C" __global__ void static_latency(const void* state, const void* operands, void* out, long long* cycles) {
  KIND chain;
  load(chain.d, state);
  load(chain.in, operands);
  long long start = ptx::clock64();
#pragma unroll
  for (int i = 0; i < LENGTH; ++i) chain.step();
  long long end = ptx::clock64();
  store(chain.d, out);
  cycles[threadIdx.x] = end - start;
}
