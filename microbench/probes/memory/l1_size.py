"""How large the L1 is, and how much of it small blocks cost.

L1 and shared memory are one array. Even a kernel without shared memory has 1 KiB reserved for each block that could
be resident, and the driver rounds up to the next carve-out: blocks of 32 threads (32 to an SM) cost 32 KiB of L1,
blocks of 1024 (two to an SM) cost 8.
"""

from microbench.machine.arch import CUDA, KIB
from microbench.measure.launch import Bench
from microbench.point import Point
from microbench.probe import Axis, Constant, Probe, Sample
from microbench.results.curves import knee
from microbench.shapes.chain import latency_metric
from microbench.shapes.chase import TWIN, builds, chase

FOOTPRINTS = tuple(KIB * size for size in (*range(8, 64, 8), *range(64, 288, 4)))


def run(bench: Bench, point: Point) -> list[Sample]:
    """Latency of one load; one thread on every SM chases, in a block of `block_threads`."""
    return [chase(bench, point, bench.machine.sm_count, point["block_threads"]).sample("latency_cycles")]


PROBE = Probe(
    asks="Up to which footprint does a load hit the L1, and does the block size change it?",
    archs=CUDA,
    axes=(Axis("block_threads", (1024, 32), quick=(1024,)), Axis("footprint_bytes", FOOTPRINTS, quick=FOOTPRINTS[::4])),
    metrics=(latency_metric("a load's result comes at least one L1 pipeline later", 16),),
    builds=builds,
    run=run,
    twin=TWIN,
    since="20261123T133",  # rings that begin at a multiple of 256 KiB
    constants=tuple(
        Constant(
            f"{name}_bytes",
            "latency_cycles",
            knee(0, "footprint_bytes", block_threads=threads),
            unit="bytes",
            quick=threads == 1024,
        )
        for name, threads in (("l1_size", 1024), ("l1_size_small_blocks", 32))
    ),
)
