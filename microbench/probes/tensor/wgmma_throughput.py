"""wgmma throughput by N, by where A comes from, and by data: the ceiling of every matrix product on Hopper.

Nothing is loaded: operands stay in shared memory or registers, so this is above what any kernel with loads reaches. The
rate per clock does not depend on the data; the rate per second does, through the power limit: zeros flatter.
"""

from microbench.machine.arch import with_feature
from microbench.measure.launch import Bench
from microbench.point import Point, Value
from microbench.probe import Axis, Build, Constant, Probe, Sample
from microbench.results.curves import at, peak
from microbench.shapes.matrix import (
    INPUTS,
    PER_TRIP,
    rate_metrics,
    rates,
    wgmma_launches,
)
from microbench.shapes.wgmma import NAMED, OPERANDS, contract, flops, least_cycles

CYCLES_A_LAUNCH = 200_000  # of the in-kernel reading
WARPGROUPS = (1, 2, 3)  # the accumulators of a fourth do not fit the registers at N = 256
KEPT = {(n, operands) for _, n, operands in NAMED}
SHAPES = (8, 32, 64, 96, 128, 192, 256)


def builds(point: Point) -> tuple[Build, ...]:
    """One chain per warpgroup, never waited for inside the loop."""
    defines = (
        ("N_COLUMNS", point["n"]),
        ("A_IN_REGISTERS", int(point["operands"] == "rs")),
        ("MAX_THREADS", 128 * WARPGROUPS[-1]),
    )
    return (Build(defines, contract(point["n"], point["operands"])),)


def run(bench: Bench, point: Point) -> list[Sample]:
    """Every SM multiplies, its warpgroups side by side."""
    (kernel,) = bench.kernels(point)
    warpgroups = point["warpgroups"]
    launch = wgmma_launches(bench, kernel, point["inputs"], warpgroups, point["n"])
    cycles_each = least_cycles(bench.machine, point)
    assert cycles_each is not None
    trips = round(CYCLES_A_LAUNCH / (cycles_each * warpgroups * PER_TRIP))
    return rates(bench, launch, trips, warpgroups * PER_TRIP * flops(point), loaded(point))


def loaded(point: Point) -> bool:
    """The best point of each shape that a profile keeps."""
    return point["warpgroups"] == best(point["operands"], point["inputs"]) and (point["n"], point["operands"]) in KEPT


def best(operands: str, inputs: str) -> int:
    """Warpgroups with the most FLOP/s, to 1.1 %, of two H100s and an H200.

    Where the power limit decides one costs least power for the same work; zeros from registers never meet it.
    """
    return 3 if (operands, inputs) == ("rs", "zeros") else 1


def constants(n: int, operands: str, name: str) -> tuple[Constant, ...]:
    """Per clock and per second, on N(0, 1) and on zeros."""
    found = []
    for label, inputs in (("", "normal"), ("_zeros", "zeros")):
        where: dict[str, Value] = {"n": n, "operands": operands, "inputs": inputs}
        fastest = at(**where, warpgroups=best(operands, inputs))
        found.append(Constant(f"{name}{label}_flops_per_clk_sm", "flops_per_clk_sm", peak("warpgroups", **where)))
        found.append(Constant(f"{name}{label}_burst_flops_per_s", "flops_per_s", fastest))
    return tuple(found)


PROBE = Probe(
    asks="How many FLOP does wgmma do per clock and per second, by N, by where A comes from and by its data?",
    archs=with_feature("wgmma"),
    axes=(Axis("n", SHAPES, quick=(64, 128, 256)), OPERANDS, INPUTS, Axis("warpgroups", WARPGROUPS)),
    metrics=rate_metrics(
        "tensor-core rate, and the operands' way out of shared memory at 128 bytes per clock",
        flops,
        least_cycles,
        loaded,
        documented=True,
    ),
    builds=builds,
    run=run,
    constants=tuple(constant for name, n, operands in NAMED for constant in constants(n, operands, name)),
)
