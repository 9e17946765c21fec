"""Changed kernels of the probes of tcgen05 and tensor memory."""

from microbench.point import Value
from tests.sabotage.edits.edit import KERNEL, Edit

PRODUCT: dict[str, Value] = {"type": "bf16", "shape": "m128", "n": 128, "operands": "ss"}
SCALED: dict[str, Value] = {"type": "nvfp4", "shape": "m128", "n": 128, "operands": "ss"}
STREAM = "multiply(multiply.slice_of_a(i % 4), i / 4 * 2 + i % 2, 1);"
LOAD: dict[str, Value] = {"direction": "load", "shape": "32x32b", "registers": 32, "warps": 8}
BLACKWELL = (
    Edit(
        "half of the products",
        "tcgen05_throughput",
        "contract",
        "4 UTCHMMA where 8",
        PRODUCT,
        {"tcgen05_loop.cuh": (("i < kPerTrip; ++i) multiply", "i < kPerTrip / 2; ++i) multiply"),)},
        arch="sm100a",
    ),
    Edit(
        "a commit after each product",
        "tcgen05_throughput",
        "contract",
        "UTCBAR",
        PRODUCT,
        {"tcgen05_loop.cuh": ((STREAM, f"{STREAM[:-1]}, ptx::tcgen05_commit(multiply.d);"),)},
        arch="sm100a",
    ),
    Edit(
        "a product that forgets",
        "tcgen05_throughput",
        "results",
        "differ",
        PRODUCT,
        {"tcgen05_loop.cuh": ((STREAM, STREAM.replace(", 1)", ", i > 0)")),)},
        arch="sm100a",
    ),
    Edit(
        "a negative slice less",
        "tcgen05_throughput",
        "results",
        "differ",
        PRODUCT,
        {"tcgen05_loop.cuh": ((STREAM, STREAM.replace("i % 4", "i % 2", 1)),)},
        arch="sm100a",
    ),
    Edit(
        "an answer that nobody waits for",
        "tcgen05_latency",
        "contract",
        "so nobody waits for it",
        PRODUCT,
        {"tcgen05_loop.cuh": (("more = (++t < trips) & come;", "more = ++t < trips;"),)},
        arch="sm100a",
    ),
    Edit(
        "half of A",
        "tcgen05_latency",
        "results",
        "differ",
        PRODUCT,
        {
            "tcgen05_loop.cuh": (
                ("(kRowBytes / 4), given.a_rows);\n  fill_tile(at.b", "(kRowBytes / 4), 64);\n  fill_tile(at.b"),
            )
        },
        arch="sm100a",
    ),
    Edit(
        "factors of A for B",
        "tcgen05_throughput",
        "results",
        "differ",
        SCALED,
        {"tcgen05_loop.cuh": (("to + 4 * i", "to + 4 * (i < 2 ? 1 - i : i)"),)},
        arch="sm100a",
    ),
    Edit(
        "factors of three quarters of the rows",
        "tcgen05_latency",
        "results",
        "differ",
        SCALED,
        {"tcgen05_loop.cuh": (("from + i * kScaleBytes, 0, 128", "from + i * kScaleBytes + 128, 0, 128"),)},
        arch="sm100a",
    ),
    Edit(
        "a copy of the factors for each product",
        "tcgen05_throughput",
        "contract",
        "UTCCP",
        SCALED,
        {"tcgen05_loop.cuh": ((STREAM, f"copy_scales<1>(multiply.d, 0, false), {STREAM}"),)},
        arch="sm100a",
    ),
    Edit(
        "loads that nobody looks at",
        "tmem_bandwidth",
        "contract",
        "LDTM.x32 where 16",
        LOAD,
        {KERNEL: (("seen ^= words.of[j][0]", "seen ^= j"),)},
        arch="sm100a",
    ),
    Edit(
        "a store that is not waited for",
        "tmem_latency",
        "contract",
        "FENCE.VIEW.ASYNC.T",
        {"way": "exchange", "registers": 32},
        {KERNEL: (("      ptx::tcgen05_wait_st();\n    }\n    ptx", "    }\n    ptx"),)},
        arch="sm100a",
    ),
    Edit(
        "one tile again and again",
        "tmem_copy_bandwidth",
        "results",
        "differ",
        {"shape": "128x256b", "blocks": 1},
        {KERNEL: (("tile_at(base + i * kTileBytes)", "tile_at(base)"),)},
        arch="sm100a",
    ),
    Edit(
        "copies by one block alone",
        "tmem_copy_bandwidth",
        "contract",
        "UTCCP.T.S.2CTA",
        {"shape": "128x256b", "blocks": 2},
        {KERNEL: (("ptx::COPY<GROUP>", "ptx::COPY<1>"),)},
        arch="sm100a",
    ),
)
