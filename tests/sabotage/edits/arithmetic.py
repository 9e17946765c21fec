"""Chains of arithmetic."""

from dataclasses import replace

from microbench.point import Value
from tests.sabotage.edits.edit import KERNEL, TIMER, Edit, Text

FULL: dict[str, Value] = {"warps": 16, "ilp": 4}
CHAINED = "for (int i = 0; i < PerTrip; ++i) x[i % Chains] = Op()(x[i % Chains], a, b);"
HALF_OF_THE_CHAIN = (
    "for (int i = 0; i < PerTrip/2; ++i) x[i % Chains] = Op()(x[i % Chains], a, b);\n    if ({condition}) {{\n"
    "#pragma unroll\n for (int i = 0; i < PerTrip/2; ++i) x[i % Chains] = Op()(x[i % Chains], a, b);}}"
)


def ffma(what: str, says: str, *texts: Text, probe: str = "ffma_throughput") -> Edit:
    point = FULL if probe == "ffma_throughput" else {}
    return Edit(what, probe, "contract" if says else "nobody", says, point, {"chain.cuh": texts})


ALIKE = Edit(
    "operands of a warp alike",
    "fixed_latency",
    "nobody",
    "",
    {"operation": "IMAD"},
    {
        "chain.cuh": (
            (
                "T x = in[threadIdx.x], a = in[32 + threadIdx.x], b = in[64 + threadIdx.x];",
                "T x = in[0], a = in[32], b = in[64];",
            ),
        )
    },
)

ARITHMETIC = (
    ffma(
        "no settle behind a chain",
        "",
        (
            "  ptx::settle(x);\n  long long end = ptx::clock64();\n  out[blockIdx.x * 32",
            "  long long end = ptx::clock64();\n  out[blockIdx.x * 32",
        ),
        probe="ffma_latency",
    ),
    ffma(
        "the last operations behind the clock",
        "FFMA where 128",
        (
            "for (int i = 0; i < Length; ++i) x = Op()(x, a, b);\n  ptx::settle(x);\n  long long end = ptx::clock64();",
            "for (int i = 0; i < Length-8; ++i) x = Op()(x, a, b);\n  ptx::settle(x);\n"
            "  long long end = ptx::clock64();\n"
            "#pragma unroll\n for(int i=0;i<8;++i) x = Op()(x,a,b);",
        ),
        probe="ffma_latency",
    ),
    ffma("a loop that ptxas unrolls", "FFMA", ("#pragma unroll 1\n", "#pragma unroll 2\n")),
    ffma("half of the chain every other trip", "second branch", (CHAINED, HALF_OF_THE_CHAIN.format(condition="t & 1"))),
    ffma(
        "half of the chain in the first trips",
        "second branch",
        (
            "  long long start = ptx::clock64();\n#pragma unroll 1\n",
            "  int half = trips / 2;\n  long long start = ptx::clock64();\n#pragma unroll 1\n",
        ),
        (CHAINED, HALF_OF_THE_CHAIN.format(condition="t < half")),
    ),
    ffma("the global timer for a rate", "another clock", TIMER),
    Edit(
        "E12 half of the lanes of a rate return",
        "ffma_throughput",
        "results",
        "differ",
        FULL,
        {
            "chain.cuh": (
                ("  int lane = threadIdx.x % 32;\n", "  int lane = threadIdx.x % 32; if (lane >= 16) return;\n"),
            )
        },
    ),
    Edit(
        "half of the warps return",
        "ffma_throughput",
        "results",
        "differ",
        FULL,
        {
            "chain.cuh": (
                (
                    "  int lane = threadIdx.x % 32;\n",
                    "  int lane = threadIdx.x % 32; if (threadIdx.x >= 256) return;\n",
                ),
            )
        },
    ),
    Edit(
        "registers that spill",
        "ffma_throughput",
        "contract",
        "spilled",
        {"warps": 32, "ilp": 4},
        {
            "chain.cuh": (
                ("  T x[Chains], a", "  T big[60]; for(int q=0;q<60;++q) big[q]=in[q*trips]; T x[Chains], a"),
                (
                    "  out[blockIdx.x * blockDim.x + threadIdx.x] = x[0];",
                    "  for(int q=0;q<60;++q) x[0]+=big[q]; out[blockIdx.x * blockDim.x + threadIdx.x] = x[0];",
                ),
            )
        },
    ),
    Edit(
        "operands that are numbers",
        "ffma_latency",
        "nobody",
        texts={KERNEL: (("ptx::ffma(x, a, b)", "ptx::ffma(x, 1.0f, 0.0f)"),)},
    ),
    Edit(
        "one operand three times",
        "ffma_throughput",
        "nobody",
        "",
        FULL,
        {KERNEL: (("ptx::ffma(x, a, b)", "ptx::ffma(x, x, x)"),)},
    ),
    Edit(
        "another rounding",
        "ffma_latency",
        "nobody",
        texts={"ptx/math.cuh": (("fma.rn.f32 %0, %1, %2, %3;", "fma.rn.ftz.sat.f32 %0, %1, %2, %3;"),)},
    ),
    Edit(
        "an addition",
        "ffma_latency",
        "contract",
        "FADD",
        texts={"ptx/math.cuh": (("fma.rn.f32 %0, %1, %2, %3;", "add.rn.f32 %0, %1, %3;"),)},
    ),
    Edit(
        "a logarithm",
        "mufu_ex2_latency",
        "contract",
        "MUFU.LG2",
        texts={"ptx/math.cuh": (("ex2.approx.ftz.f32 %0, %1;", "lg2.approx.ftz.f32 %0, %1;"),)},
    ),
    Edit(
        "denormals",
        "mufu_ex2_latency",
        "contract",
        "not declared",
        texts={"ptx/math.cuh": (("ex2.approx.ftz.f32 %0, %1;", "ex2.approx.f32 %0, %1;"),)},
    ),
    Edit(
        "an exponential of f16",
        "mufu_ex2_latency",
        "contract",
        "MUFU.EX2.F16",
        texts={
            "ptx/math.cuh": (
                (
                    'ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)',
                    "{ .reg .b16 h; .reg .b32 w; mov.b32 w, %1; cvt.u16.u32 h, w; "
                    'ex2.approx.f16 h, h; cvt.u32.u16 w, h; mov.b32 %0, w; }" : "=f"(y) : "f"(x)',
                ),
            )
        },
    ),
    Edit(
        "a multiplication and an addition",
        "ffma_throughput",
        "contract",
        "FFMA",
        FULL,
        {KERNEL: (("ptx::ffma(x, a, b)", "__fadd_rn(__fmul_rn(x, a), b)"),)},
    ),
    ALIKE,
    replace(ALIKE, what="operands of a warp alike, on Blackwell", arch="sm100a"),
)
