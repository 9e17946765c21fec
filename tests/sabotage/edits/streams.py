"""Bandwidths of L1, L2 and DRAM, and boxes from the L2."""

from microbench.point import Value
from tests.sabotage.edits.edit import KERNEL, TIMER, By, Edit, Text

SUMMED = "  unsigned sum = 0;\n"
STREAM: dict[str, Value] = {"bytes_in_flight": 32768}
SCATTERED: dict[str, Value] = {"order": "scattered", "footprint_bytes": 8 << 20, **STREAM}

WAIT = "ptx::mbarrier_wait(bars + 8 * ((t + 1) % STAGES), (t + 1) / STAGES % 2);"


def stream(what: str, probe: str, by: By, says: str, *texts: Text) -> Edit:
    point = {"l2_bandwidth": SCATTERED, "l1_bandwidth": STREAM}.get(probe, {"mode": "read", **STREAM})
    return Edit(what, probe, by, says, point, {KERNEL: texts})


def boxes(what: str, by: By, says: str, *texts: Text) -> Edit:
    point: dict[str, Value] = {"width": 32, "place": "across", "order": "shared", "bytes_in_flight": 65536}
    return Edit(what, "tma_throughput", by, says, point, {KERNEL: texts})


STREAMS = (
    stream("the L2 through the L1", "l2_bandwidth", "nobody", "", ("ptx::load4_cg(", "ptx::load4(")),
    stream("DRAM through the L1", "dram_bandwidth", "nobody", "", ("ptx::load4_cg(", "ptx::load4(")),
    stream("E2 the L1 passed by", "l1_bandwidth", "contract", "LDG.E.128", ("ptx::load4(", "ptx::load4_cg(")),
    stream("the global timer for the L1", "l1_bandwidth", "contract", "another clock", TIMER),
    stream(
        "E11 half of the lanes return",
        "l2_bandwidth",
        "results",
        "differ",
        (SUMMED, f"{SUMMED}  if (threadIdx.x % 32 >= 16) return;\n"),
    ),
    stream(
        "E15 L1 loads wait through the XORs",
        "l1_bandwidth",
        "contract",
        "no op may wait",
        ("mine + j * (THREADS * 16))", "mine + j * (THREADS * 16) + (sum & 0x80000000u) * (ptx::u64)step)"),
    ),
    stream(
        "E16 L2 loads wait through the XORs",
        "l2_bandwidth",
        "contract",
        "no op may wait",
        ("    chunk += chunk_step;\n", "    chunk += chunk_step + (sum >> 31 & chunk_mask >> 30);\n"),
    ),
    stream(
        "a load in the time that warms",
        "l1_bandwidth",
        "nobody",
        "",
        (
            "  long long start = ptx::clock64();",
            "  long long start = ptx::clock64();\n  ptx::settle(ptx::load4(mine).x);\n",
        ),
    ),
    stream(
        "lanes of a warp share 16 bytes of the L1",
        "l1_bandwidth",
        "results",
        "differ",
        ("+ threadIdx.x * 16;", "+ threadIdx.x / 32 * 16;"),
    ),
    stream(
        "every block reads the same chunk",
        "dram_bandwidth",
        "contract",
        "overhead",
        ("(ptx::u64)chunk * CHUNK_BYTES;", "(chunk >> 20);"),
    ),
    Edit(
        "every block writes the same chunk",
        "dram_bandwidth",
        "results",
        "differ",
        {"mode": "write", **STREAM},
        {KERNEL: (("ptx::u64 offset = lane + (ptx::u64)chunk * CHUNK_BYTES;", "ptx::u64 offset = lane;"),)},
    ),
    Edit(
        "lanes of a warp write the same 16 bytes",
        "dram_bandwidth",
        "results",
        "differ",
        {"mode": "write", **STREAM},
        {KERNEL: (("ptx::u64 lane = threadIdx.x * 16;", "ptx::u64 lane = threadIdx.x / 32 * 512;"),)},
    ),
    Edit(
        "stores under a predicate",
        "dram_bandwidth",
        "contract",
        "under a predicate",
        {"mode": "copy", **STREAM},
        {
            KERNEL: (
                (
                    "ptx::store4(target + offset + j * (THREADS * 16), v[j]);",
                    "ptx::store4_if(v[j].x == 7, target + offset + j * (THREADS * 16), v[j]);",
                ),
            )
        },
    ),
    Edit(
        "stores that are evicted first",
        "dram_bandwidth",
        "contract",
        "STG.E.128",
        {"mode": "write", **STREAM},
        {
            "ptx/memory.cuh": (
                ('st.global.v4.u32 [%0], {%1, %2, %3, %4};"', 'st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};"'),
            )
        },
    ),
    stream(
        "words of which one is used",
        "l1_bandwidth",
        "contract",
        "no loop",
        ("v[j].x ^ v[j].y ^ v[j].z ^ v[j].w", "v[j].x"),
    ),
    boxes("half of a stage's boxes", "contract", "UTMALDG.2D", ("box < HIGH * kPanels", "box < HIGH * kPanels / 2")),
    boxes(
        "a stage that nobody waits for",
        "contract",
        "TRYWAIT",
        (WAIT, ""),
    ),
    boxes("a stage that every other trip waits for", "contract", "second branch", (WAIT, f"if (t & 1) {WAIT}")),
    boxes("all boxes from one column", "results", "differ", ("box % kPanels * (WIDTH / 2)", "0 * box")),
)
