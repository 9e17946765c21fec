"""f32 matrix product through NumPy's BLAS, on all cores: the rate that a library's attention can come near."""

import numpy as np

from microbench.machine import cpu as host_cpu
from microbench.machine.arch import HOST, Machine
from microbench.measure.host import HostBench
from microbench.point import Point
from microbench.probe import Axis, Bound, Constant, Metric, Probe, Sample
from microbench.results.curves import peak
from microbench.shapes.lap import fma_per_clk, uniform


def run(bench: HostBench, point: Point) -> list[Sample]:
    """(n, n) @ (n, n) into an existing result, by as many threads as the BLAS starts."""
    n = point["n"]
    a, b = (uniform(bench, n * n, -1.0, 1.0).reshape(n, n) for _ in range(2))
    out = np.empty((n, n), np.float32)

    def work(times: int) -> None:
        for _ in range(times):
            np.matmul(a, b, out=out)

    blas = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {}).get("name", "unknown")
    return [bench.library(work).flagged(f"blas {blas}").rate("flops_per_s", 2.0 * n**3)]


def flops(machine: Machine, point: Point) -> float | None:
    """Two per lane and clock; a Mac's BLAS uses a matrix unit beside the cores, of which nobody tells the width."""
    if "asimd" in machine.arch.features and "sve" not in machine.arch.features:
        return None
    lanes = fma_per_clk()(machine, point)
    return None if lanes is None else 2 * lanes * machine.sm_count * host_cpu.fastest_hz(machine)


PROBE = Probe(
    asks="How many f32 operations per second does NumPy's BLAS reach in a matrix product on this CPU?",
    archs=HOST,
    axes=(Axis("n", (256, 512, 1024)),),
    metrics=(
        Metric("flops_per_s", "FLOP/s", Bound("multiply-add lanes of all cores at the highest clock", upper=flops)),
    ),
    run=run,
    constants=(Constant("matmul_f32_flops_per_s", "flops_per_s", peak("n")),),
)
