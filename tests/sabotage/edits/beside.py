"""Work beside other work, which must stand where it is said to: pipes in parallel, and warps that hand on a phase."""

from microbench.point import Value
from tests.sabotage.edits.edit import KERNEL, Edit

AFTER: dict[str, Value] = {"n": 128, "operands": "ss", "time_ratio": 1.0, "where": "after"}
OTHER: dict[str, Value] = AFTER | {"where": "other"}
WORK, WAIT = "    others.template compute<Results>();\n", "    products.wait();\n"
PIN = "    if (kPinned) products.pin(t);\n"

BESIDE = (
    Edit(
        "work behind the wait for the products",
        "wgmma_beside_ex2",
        "contract",
        "stands behind a WARPGROUP.DEPBAR.LE",
        AFTER,
        {"beside.cuh": ((WORK + PIN + WAIT, PIN + WAIT + WORK),)},
        build=2,
    ),
    Edit(
        "work among the products that is said to be behind them",
        "wgmma_beside_ffma",
        "contract",
        "stands behind a FFMA",
        AFTER,
        {"beside.cuh": (("kPinned = Placed == Where::after &&", "kPinned = false &&"),)},
        build=2,
    ),
    Edit(
        "half of the work in the warpgroup beside the products",
        "wgmma_beside_ex2",
        "contract",
        "32 MUFU.EX2 where 64 are declared",
        OTHER,
        {"beside.cuh": (("compute<Results>();\n    others.settle", "compute<Results / 2>();\n    others.settle"),)},
    ),
    Edit(
        "a polynomial of a lower degree",
        "ex2_split",
        "contract",
        "FFMA",
        {"share": 0.5, "warps": 16},
        {KERNEL: (("  p = ptx::ffma(p, f, 0.69328290f);\n", ""),)},
    ),
    Edit(
        "a polynomial of another function",
        "ex2_split",
        "results",
        "differ",
        {"share": 0.5, "warps": 16},
        {KERNEL: (("0.69328290f", "0.70328290f"),)},
    ),
    Edit(
        "a phase that nobody waits for",
        "mbarrier_handover_latency",
        "contract",
        "TRYWAIT",
        {"scheduler": "other"},
        {KERNEL: (("ptx::mbarrier_try(mine, t % 2)", "t >= 0"),)},
    ),
)
