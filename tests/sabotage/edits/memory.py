"""Pointer chases through memory."""

from tests.sabotage.edits.edit import HALF, KERNEL, TIMER, Edit, Text

LOAD = "ld.global.u64 %0, [%1];"
CHASED = "for (int j = 0; j < Length; ++j) address = ptx::load(address);"
HALF_A_CLOCK = '[] { unsigned t; asm volatile("mov.u32 %0, %%clock;" : "=r"(t)::"memory"); return (long long)t; }()'
HALF_OF_THE_LOADS = (
    "for (int j = 0; j < Length/2; ++j) address = ptx::load(address);\n    if ({condition}) {{\n#pragma unroll\n"
    "    for (int j = 0; j < Length/2; ++j) address = ptx::load(address);}}"
)


def chase(what: str, says: str, *texts: Text) -> Edit:
    return Edit(what, "memory_latency", "contract" if says else "nobody", says, texts={"chase.cuh": texts})


def loads(what: str, says: str, ptx: str) -> Edit:
    return Edit(what, "memory_latency", "contract", says, texts={"ptx/memory.cuh": ((LOAD, ptx),)})


MEMORY = (
    chase("no dependence", "no loop", (CHASED, CHASED.replace("address = ", ""))),
    chase(
        "every second load waits for none",
        "16 LDG.E.64 where 32",
        (CHASED, "for (int j = 0; j < Length/2; ++j) {ptx::u64 q=ptx::load(address); address=ptx::load(address);}"),
    ),
    loads("E1 the chase passes the L1", "no loop", "ld.global.cg.u64 %0, [%1];"),
    loads("E3 a strong load of the system", "LDG.E.64", "ld.relaxed.sys.global.u64 %0, [%1];"),
    loads("E4 a texture's load", "LDG.E.64", "ld.global.nc.u64 %0, [%1];"),
    loads("E5 a load that fetches 256 bytes", "LDG.E.64", "ld.global.L2::256B.u64 %0, [%1];"),
    loads("a generic load", "LDG.E.64", "ld.u64 %0, [%1];"),
    loads("a volatile load", "LDG.E.64", "ld.volatile.global.u64 %0, [%1];"),
    chase("no settle at the end", "", ("  ptx::settle(address);\n  long long end", "  long long end")),
    chase("no warm lap", "", ("for (int i = 0; i < warm_steps; ++i) address = ptx::load(address);", "")),
    Edit(
        "an offset in the address",
        "memory_latency",
        "nobody",
        texts={
            "ptx/memory.cuh": (
                (
                    f'asm volatile("{LOAD}" : "=l"(value) : "l"(address) : "memory");',
                    'asm volatile("ld.global.u64 %0, [%1+8];" : "=l"(value) : "l"(address-8) : "memory");',
                ),
            )
        },
    ),
    chase(
        "E8 half the trips behind the second clock",
        "behind the second clock read",
        ("for (int i = 0; i < trips; ++i) {", "for (int i = 0; i < trips / 2; ++i) {"),
        (
            "  long long end = ptx::clock64();\n",
            "  long long end = ptx::clock64();\n#pragma unroll 1\n  for (int i = trips / 2; i < trips; ++i) {\n"
            f"#pragma unroll\n    {CHASED}\n  }}\n",
        ),
    ),
    chase(
        "unrolled by two",
        "LDG.E.64",
        ("#pragma unroll 1\n  for (int i = 0; i < trips", "#pragma unroll 2\n  for (int i = 0; i < trips"),
    ),
    chase("the global timer", "reads another clock", TIMER),
    chase("half the loads every other trip", "second branch", (CHASED, HALF_OF_THE_LOADS.format(condition="i & 1"))),
    chase(
        "E9 half the loads in the first trips",
        "second branch",
        HALF,
        (CHASED, HALF_OF_THE_LOADS.format(condition="i < half")),
    ),
    chase("a clock of 32 bits", "reads the clock by a slow path", ("ptx::clock64()", HALF_A_CLOCK)),
    chase(
        "the first clock before the warm lap",
        "LDG.E.64",
        ("  long long start = ptx::clock64();\n", ""),
        (
            "  ptx::u64 address = places[blockIdx.x];",
            "  ptx::u64 address = places[blockIdx.x];\n  long long start = ptx::clock64();",
        ),
    ),
    chase(
        "two rings in turns",
        "LDG.E.64",
        (
            CHASED,
            CHASED.replace(
                "address = ptx::load(address)", "{ address = ptx::load(address); other = ptx::load(other); }"
            ),
        ),
        (
            "  ptx::settle(address);\n  long long start",
            "  ptx::u64 other = address;\n  ptx::settle(address);\n  long long start",
        ),
        ("  places[blockIdx.x] = address;", "  places[blockIdx.x] = address ^ other;"),
    ),
    Edit(
        "an index that waits for none",
        "l1_index_latency",
        "contract",
        "LDG.E",
        texts={KERNEL: (("index = ring[index];\n  }", "index ^= *(volatile const int*)(ring + i * 32 + j);\n  }"),)},
    ),
    Edit("the global timer for an index", "l1_index_latency", "contract", "another clock", texts={KERNEL: (TIMER,)}),
    Edit(
        "an index of 64 bits",
        "l1_index_latency",
        "contract",
        "no loop",
        texts={
            KERNEL: (
                (
                    "index = ring[index];\n  }",
                    "index = *(const int*)((ptx::u64)ring + (ptx::u64)(unsigned)(index << 2));\n  }",
                ),
            )
        },
    ),
)
