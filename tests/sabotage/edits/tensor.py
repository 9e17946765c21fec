"""Products on tensor cores."""

from microbench.point import Value
from tests.sabotage.edits.edit import HALF, Edit

WGMMA: dict[str, Value] = {"n": 256, "operands": "ss", "inputs": "normal", "warpgroups": 2}
PRODUCT = "Type::mma(d[i % Chains], a[i / Chains % 2], b[i % Chains]);"
MMA: dict[str, Value] = {"warps": 16, "ilp": 4, "inputs": "normal"}

TENSOR = (
    Edit(
        "E6 bf16 for f16",
        "mma_sync_latency",
        "contract",
        "HMMA.16816.F32",
        {"type": "f16"},
        {"mma_loop.cuh": (("ptx::mma_m16n8k16_f16(d, a, b);", "ptx::mma_m16n8k16_bf16(d, a, b);"),)},
    ),
    Edit(
        "chains that share an accumulator",
        "mma_sync_throughput",
        "contract",
        "reads the op 2 before it",
        MMA,
        {"mma_loop.cuh": (("Type::mma(d[i % Chains]", "Type::mma(d[i % 2]"),)},
    ),
    Edit(
        "operands of zeros",
        "mma_sync_throughput",
        "contract",
        "",
        MMA,
        {"mma_loop.cuh": (("b[i / 2][i % 2] = mine[(8 + i) * blockDim.x];", "b[i / 2][i % 2] = 0;"),)},
    ),
    Edit(
        "half of the products in the first trips",
        "mma_sync_throughput",
        "contract",
        "",
        MMA,
        {
            "mma_loop.cuh": (
                HALF,
                (
                    f"for (int i = 0; i < PER_TRIP; ++i) {PRODUCT}",
                    f"for (int i = 0; i < 4; ++i) {PRODUCT}\n if (t < half) {{\n"
                    f"#pragma unroll\n for (int i = 4; i < PER_TRIP; ++i) {PRODUCT} }}",
                ),
            )
        },
    ),
    Edit(
        "products of half the depth",
        "mma_sync_throughput",
        "contract",
        "HMMA.16816.F32.BF16",
        MMA,
        {
            "mma_loop.cuh": (
                (
                    "ptx::mma_m16n8k16_bf16(d, a, b);",
                    "unsigned half[2] = {a[0], a[1]}, one[1] = {b[0]}; ptx::mma_m16n8k8_bf16(d, half, one);",
                ),
            )
        },
    ),
    Edit(
        "a wgmma that forgets",
        "wgmma_latency",
        "contract",
        "",
        {"n": 256, "operands": "ss"},
        {"wgmma_loop.cuh": (("da + ptx::wgmma_slice(i % 4), bk, 1)", "da + ptx::wgmma_slice(i % 4), bk, 0)"),)},
        build=1,
    ),
    Edit(
        "a wait that comes one late",
        "wgmma_latency",
        "contract",
        "C7517",
        {"n": 256, "operands": "ss"},
        {"wgmma_loop.cuh": (("if (WaitEach) ptx::wgmma_wait<0>();", "if (WaitEach) ptx::wgmma_wait<1>();"),)},
    ),
    Edit(
        "one slice of B",
        "wgmma_throughput",
        "nobody",
        "",
        WGMMA,
        {"wgmma_loop.cuh": (("ptx::u64 bk = db + ptx::wgmma_slice(i / 4 * 2 + i % 2);", "ptx::u64 bk = db;"),)},
    ),
    Edit(
        "E18 a tile that is never filled",
        "wgmma_throughput",
        "results",
        "differ",
        WGMMA,
        {"wgmma_loop.cuh": (("  fill_tile(b_tile, b, N);\n", ""),)},
    ),
    Edit(
        "a wait in the loop",
        "wgmma_throughput",
        "contract",
        "WARPGROUP",
        WGMMA,
        {"wgmma_loop.cuh": (("if (WaitEach) ptx::wgmma_wait<0>();", "ptx::wgmma_wait<0>();"),)},
    ),
    Edit("fewer columns", "wgmma_throughput", "contract", "HGMMA.64x256x16", WGMMA, defines={"N_COLUMNS": 128}),
    Edit(
        "E19 A from registers", "wgmma_throughput", "contract", "HGMMA.64x256x16", WGMMA, defines={"A_IN_REGISTERS": 1}
    ),
)
