"""What both tcgen05.mma probes share: types, shapes, what one product costs at least, and how it is launched.

The shape stands in the instruction descriptor, an argument of the kernel, so that a build is of a type, of one block or
a pair, and of where A comes from.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microbench.machine.arch import Machine
from microbench.machine.tensor import tensor_flops_per_clk
from microbench.measure.launch import Bench, Expected, Launch
from microbench.point import Point, Value
from microbench.probe import Axis, Build, OpCount, SassContract
from microbench.shapes.tcgen05_operands import FORMATS, TileOperands, lane_sums

THREADS = 128
ROW_BYTES = 128  # four slices of one instruction
SLICE_BYTES = 32
MOST_ROWS = 256 + 128  # of B and of A in shared memory
SCALE_BYTES = 3 * 512  # of their factors
# With barriers, and what aligning to 1024 bytes may take.
SMEM_BYTES = ROW_BYTES * MOST_ROWS + SCALE_BYTES + 64 + 1024
# Of thousands of sums that the tensor cores cut off rather than round. A wrong operand is off by tens.
SUM_WITHIN = 1e-2


@dataclass(frozen=True)
class Shape:
    """Rows of one instruction, and how many blocks, each on its SM, share it."""

    m: int
    blocks: int

    @property
    def rows(self) -> int:
        """Of A and D, of one block."""
        return self.m // self.blocks


SHAPES = {"m64": Shape(64, 1), "m128": Shape(128, 1), "m128_pair": Shape(128, 2), "m256_pair": Shape(256, 2)}
AXES = (
    Axis("type", tuple(FORMATS), quick=("bf16",)),
    Axis("shape", tuple(SHAPES), quick=("m128", "m256_pair")),
    Axis("n", (32, 64, 96, 128, 192, 256), quick=(128,)),
    Axis("operands", ("ss", "ts")),  # A from shared memory, or from tensor memory
)
WHY = "tensor-core rate of these types, and the operands' way out of shared memory at 128 bytes per clock"


def named() -> tuple[tuple[str, dict[str, Value]], ...]:
    """Those that a profile keeps, by stem: attention's own shape, A from tensor memory, the widest, and the pair."""
    variants = (("", "m128", 128, "ss"), ("_ts", "m128", 128, "ts"), ("_n256", "m128", 256, "ss"))
    pairs = (("_pair", "m256_pair", 128, "ss"), ("_pair_ts", "m256_pair", 128, "ts"))
    return tuple(
        (f"tcgen05_{kind}{label}", {"type": kind, "shape": shape, "n": n, "operands": operands})
        for kind, form in FORMATS.items()
        for label, shape, n, operands in (*variants, *pairs)
        if operands == "ss" or not form.padded_from
    )


def shape_of(point: Point) -> Shape:
    return SHAPES[point["shape"]]


def flops(point: Point) -> float:
    """Of one instruction, in each of its blocks."""
    return 2.0 * shape_of(point).rows * float(point["n"]) * FORMATS[point["type"]].depth


def least_cycles(machine: Machine, point: Point) -> float | None:
    """The tensor cores' time, or that of reading a block's own rows of A and B where it is longer."""
    rate, limits, shape = tensor_flops_per_clk(machine, point["type"]), machine.arch.limits, shape_of(point)
    if rate is None or limits is None:
        return None
    rows: float = point["n"] / shape.blocks + (shape.rows if point["operands"] == "ss" else 0)
    return max(flops(point) / rate, rows * SLICE_BYTES / limits.smem_bytes_per_clk)


def refused(machine: Machine, point: Point) -> str | None:
    """Why there is no such product here."""
    if machine.arch.name not in FORMATS[point["type"]].archs:
        return f"{machine.arch.name} has no tcgen05.mma of {point['type']}: ptxas refuses it"
    if FORMATS[point["type"]].scales and point["shape"] == "m64":
        return "block-scaled types have no tcgen05.mma of 64 rows (PTX ISA, 'Matrix Shape')"
    if FORMATS[point["type"]].padded_from and point["operands"] == "ts":
        return "where 6 and 4 bits lie in a byte of tensor memory the PTX ISA shows in a figure alone"
    if point["shape"] == "m128_pair" and point["operands"] == "ts":
        return "where 64 rows a block of A lie in tensor memory the PTX ISA does not say in words"
    return None


def product(point: Point, count: int) -> OpCount:
    """So many of the instruction, by its name in SASS."""
    name, *also = (_spelled(opcode, point) for opcode in FORMATS[point["type"]].opcodes)
    return OpCount(name, count, tuple(also), _operand_kinds(point))


def _spelled(opcode: str, point: Point) -> str:
    name, *modifiers = opcode.split(".")
    return ".".join((name, *(("2CTA",) if shape_of(point).blocks == 2 else ()), *modifiers))


def _operand_kinds(point: Point) -> str:
    """A, B, D, what belongs to sparse types alone, the instruction descriptor, factors, and whether it adds."""
    scales = "tmem " if FORMATS[point["type"]].scales else ""
    return f"{'tmem' if point['operands'] == 'ts' else 'gdesc'} gdesc tmem tmem idesc {scales}R"


def build(point: Point, contract: SassContract) -> Build:
    form = FORMATS[point["type"]]
    defines: tuple[tuple[str, int | str], ...] = (
        ("KIND", form.kind),
        ("SUM", form.sum),
        ("GROUP", shape_of(point).blocks),
        ("A_IN_TENSOR_MEMORY", int(point["operands"] == "ts")),
        ("SCALED", int(form.scales is not None)),
    )
    return Build(defines, contract)


def instruction(point: Point) -> int:
    """The instruction descriptor: tcgen05_instruction(...), or _scaled_, of ptx/tcgen05_descriptor.cuh, K-major."""
    form, n = FORMATS[point["type"]], int(point["n"])
    operands = form.number << 7 | form.number << 10 | n >> 3 << 17 | shape_of(point).m >> 4 << 24
    return operands | (form.scales.number << 23 if form.scales else form.sum_number << 4)


def launches(bench: Bench, point: Point, sums_after: Callable[[int], int]) -> Callable[[int], Launch]:
    """A launch by its trips: one block on every SM. D ends as `sums_after(trips)` times the product of one slice."""
    (kernel,) = bench.kernels(point)
    shape, form, n = shape_of(point), FORMATS[point["type"]], int(point["n"])
    blocks = bench.machine.sm_count // shape.blocks * shape.blocks
    operands = TileOperands.of(form, shape.m, n, shape.blocks)
    a, b, scales = (bench.array(each) for each in (operands.a, operands.b, operands.scales))
    out = bench.empty(4 * THREADS * blocks)
    columns = n // 2 if point["shape"] == "m128_pair" else n
    numbers = np.int32(shape.rows), np.int32(n // shape.blocks), np.uint32(instruction(point)), np.int32(columns)

    def launch(trips: int) -> Launch:
        def expected() -> NDArray[Any]:
            sums = lane_sums(operands, shape.rows, shape.blocks) * sums_after(trips)
            return np.tile(sums.astype(form.dtype_of_sums), blocks // shape.blocks)

        expects = (Expected(out, expected, 0.0 if form.sum == "int" else SUM_WITHIN),)
        args = (a, b, scales, *numbers, np.int32(trips), out)
        return Launch(kernel, blocks, THREADS, args, SMEM_BYTES, expects, cluster=shape.blocks)

    return launch
