"""Latency, bandwidth and bank conflicts of shared memory."""

from tests.sabotage.edits.edit import KERNEL, TIMER, Edit

SHARED_LOAD = "ld.volatile.shared.u32 %0, [%1];"

SHARED = (
    Edit(
        "a constant address",
        "smem_latency",
        "contract",
        "",
        {"chase": "raw"},
        {KERNEL: (("at = step(base, at);", "{ at = step(base, base); }"),)},
    ),
    Edit(
        "an index that waits for none, in shared memory",
        "smem_latency",
        "contract",
        "",
        {"chase": "index"},
        {KERNEL: (("at = step(base, at);", "at = ptx::load_shared(base + (trips + j) % WORDS * 4) + 0;"),)},
    ),
    Edit(
        "an index at a constant address",
        "smem_latency",
        "contract",
        "",
        {"chase": "index"},
        {KERNEL: (("at = step(base, at);", "at = ptx::load_shared(base + hop * 4);"),)},
    ),
    Edit(
        "E10 the global timer in shared memory",
        "smem_latency",
        "contract",
        "another clock",
        {"chase": "index"},
        {KERNEL: (TIMER,)},
    ),
    Edit(
        "E20 the raw kernel for the index",
        "smem_latency",
        "contract",
        "overhead",
        {"chase": "index"},
        defines={"INDEX": 0},
    ),
    Edit(
        "the index kernel for the raw one",
        "smem_latency",
        "contract",
        "LEA not declared",
        {"chase": "raw"},
        defines={"INDEX": 1},
    ),
    Edit(
        "E7 bytes for words",
        "smem_bandwidth",
        "contract",
        "no loop",
        {"width_bytes": 4},
        {"ptx/memory.cuh": ((SHARED_LOAD, "ld.volatile.shared.u8 %0, [%1];"),)},
    ),
    Edit(
        "E13 a bank conflict of two",
        "smem_bandwidth",
        "results",
        "differ",
        {"width_bytes": 4},
        {KERNEL: (("base + threadIdx.x * WIDTH;", "base + (threadIdx.x * 2 % THREADS) * WIDTH;"),)},
    ),
    Edit(
        "a warp reads one place",
        "smem_bandwidth",
        "results",
        "differ",
        {"width_bytes": 16},
        {KERNEL: (("base + threadIdx.x * WIDTH;", "base + threadIdx.x / 32 * WIDTH;"),)},
    ),
    Edit(
        "half of the lanes of shared loads return",
        "smem_bandwidth",
        "results",
        "differ",
        {"width_bytes": 16},
        {KERNEL: (("  unsigned sum = load", "  if (threadIdx.x % 32 >= 16) return;\n  unsigned sum = load"),)},
    ),
    Edit(
        "E14 no conflict where eight are named",
        "smem_bank_conflicts",
        "results",
        "differ",
        {"width_bytes": 4, "ways": 8},
        defines={"WAYS": 1},
    ),
    Edit(
        "shared memory by generic addresses",
        "smem_bandwidth",
        "contract",
        "LDS",
        {"width_bytes": 4},
        {
            "ptx/memory.cuh": (
                (
                    f'{SHARED_LOAD}" : "=r"(value) : "r"(address)',
                    'ld.volatile.u32 %0, [%1];" : "=r"(value) : "l"((u64)__cvta_shared_to_generic(address))',
                ),
            )
        },
    ),
)
