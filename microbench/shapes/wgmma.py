"""What both wgmma probes share: the shapes, the instruction's name in SASS, and what it costs at least."""

from microbench.machine.arch import Machine
from microbench.point import Point
from microbench.probe import Axis, OpCount, Overhead, SassContract
from microbench.shapes.chain import COUNT, loop
from microbench.shapes.matrix import A_ROWS, PER_TRIP, K, tensor_cycles

OPERANDS = Axis("operands", ("ss", "rs"))  # where A comes from: shared memory or registers
# Those whose numbers a profile keeps: the stem of its constants, N, and where A comes from.
NAMED = tuple(
    (f"wgmma{shape}_bf16{label}", n, operands)
    for shape, n in (("", 256), ("_n128", 128), ("_n64", 64))
    for label, operands in (("", "ss"), ("_rs", "rs"))
)
# An HGMMA takes its two descriptors from four uniform registers in a row, so ptxas moves halves about between them
# (UMOV, UIADD3, ULOP3: up to 19, issued while the tensor cores are busy). A NOP before each HGMMA of 192 columns or
# more carries its stall.
DESCRIPTORS = ("ULOP3", "LDC", "UMOV", "NOP")
DESCRIPTORS_MAX = 22
KINDS = {"ss": "R gdesc R", "rs": "R R gdesc R"}


def flops(point: Point) -> float:
    """One wgmma m64nNk16."""
    n: int = point["n"]
    return 2.0 * A_ROWS * n * K


def least_cycles(machine: Machine, point: Point) -> float | None:
    """The tensor cores' time, or that of reading the operands from shared memory where it is longer (small N)."""
    limits = machine.arch.limits
    multiply = tensor_cycles(flops(point))(machine, point)
    if limits is None or multiply is None:
        return None
    rows: int = point["n"] + (A_ROWS if point["operands"] == "ss" else 0)
    return max(multiply, rows * 2 * K / limits.smem_bytes_per_clk)


def contract(n: int, operands: str, wait_each: bool = False) -> SassContract:
    """The loop of wgmma_loop.cuh. A chain holds no wait at all: one would serialise the wgmma."""
    ops = OpCount(f"HGMMA.64x{n}x16.F32.BF16", PER_TRIP, operands=KINDS[operands])
    descriptors = Overhead((*DESCRIPTORS, *COUNT), 2, DESCRIPTORS_MAX)
    if wait_each:
        waits = (OpCount("WARPGROUP.ARRIVE", PER_TRIP), OpCount("WARPGROUP.DEPBAR.LE", PER_TRIP))
        return loop(ops, *waits, overhead=(descriptors,))
    arrives = Overhead(("WARPGROUP.ARRIVE",), 1, 1)
    return loop(ops, distance=1, overhead=(arrives, descriptors))
