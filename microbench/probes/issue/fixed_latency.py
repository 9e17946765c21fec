"""Fixed latency without a clock: the stall count is lowered in the cubin until the result is wrong.

An FFMA, FADD or IMAD raises no scoreboard: whether its result stands when the next one reads it is up to the stall
count that ptxas wrote. Four everywhere; on an H100 a chain is right at four and wrong at three. A latency measured by
the clock says what the schedule took; this says what the hardware needs.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microbench.bounds import limit
from microbench.device.protocol import Kernel
from microbench.errors import DeviceError
from microbench.machine.arch import CUDA
from microbench.measure.launch import Bench, Expected, Launch
from microbench.point import Point
from microbench.probe import Axis, Bound, Build, Constant, Metric, Probe, Sample
from microbench.results.curves import at
from microbench.shapes.chain import straight

CHAIN = 64
REPEATS = 20
WITHIN = 1e-5  # of 64 steps that are each rounded once, by the kernel and by NumPy through float64
OPERATIONS = {"FFMA": ("Ffma", "float"), "FADD": ("Fadd", "float"), "IMAD": ("Imad", "unsigned")}


def builds(point: Point) -> tuple[Build, ...]:
    """One chain, each operation reading the result of the one before."""
    functor, kind = OPERATIONS[point["operation"]]
    defines = (("OPERATION", functor), ("TYPE", kind), ("CHAIN", CHAIN))
    return (Build(defines, straight(point["operation"], CHAIN)),)


def smallest_right(scheduled: int, right: Callable[[int], bool]) -> int:
    """The smallest stall from `scheduled` down to 1 at which everything above it and itself is right; 0 for none."""
    smallest = 0
    for stall in range(scheduled, 0, -1):
        if not right(stall):
            break
        smallest = stall
    return smallest


def operands(operation: str) -> NDArray[Any]:
    """Three rows of a warp, x, a, b, by which a chain neither overflows nor comes to rest."""
    rng = np.random.default_rng(11)
    if operation == "IMAD":
        return rng.integers(1, 2**20, (3, 32), dtype=np.uint32) | np.uint32(1)
    rows = (rng.uniform(1, 2, 32), rng.uniform(0.99, 1.01, 32), rng.uniform(0.01, 0.1, 32))
    return np.stack(rows).astype(np.float32)


def chained(operation: str, sms: int) -> NDArray[Any]:
    """What the chain comes to, by NumPy, on every SM: float32 or uint32."""
    x, a, b = operands(operation)
    for _ in range(CHAIN):
        if operation == "IMAD":
            x = x * a + b
        else:
            exact = x.astype(np.float64)
            x = (exact * a + b if operation == "FFMA" else exact + a).astype(np.float32)
    return np.tile(x, sms)


def run(bench: Bench, point: Point) -> list[Sample]:
    (kernel,), (build,) = bench.kernels(point), builds(point)
    places = bench.stalls(kernel, build.contract)
    inputs, sms = bench.array(operands(point["operation"])), bench.machine.sm_count
    out = bench.array(np.zeros(32 * sms, np.uint32))

    def results(tested: Kernel) -> NDArray[np.uint32]:
        # What a patched kernel gives is the question.
        expects = (Expected(out, partial(chained, point["operation"], sms), WITHIN),) if tested is kernel else ()
        launch = Launch(tested, sms, 32, (inputs, out), expects=expects)
        rows = []
        for _ in range(REPEATS):
            bench.launch(launch, bench.clocks(launch))
            rows.append(out.get())
        return np.stack(rows)

    expected = results(kernel)

    def right(stall: int) -> bool:
        patched = bench.patched(kernel, tuple((index, stall) for index, _ in places))
        return bool((results(patched) == expected).all())

    found = smallest_right(min(stall for _, stall in places), right)
    if found == 0 or (expected != expected[0]).any():
        raise DeviceError(
            f"{bench.machine.name} computes a chain of {point['operation']} differently from launch to launch at the "
            "stalls that ptxas wrote; look at `nvidia-smi` for ECC errors."
        )
    return [Sample("latency_cycles", found, found, found, REPEATS)]


WHY = "one cycle between two issues, and ptxas leaves four"
PROBE = Probe(
    asks="How few cycles may stand between two dependent instructions of fixed latency before the result is wrong?",
    archs=CUDA,
    axes=(Axis("operation", tuple(OPERATIONS)),),
    metrics=(Metric("latency_cycles", "cycles", Bound(WHY, 1, limit(lambda sm: sm.alu_latency_cycles))),),
    builds=builds,
    run=run,
    constants=tuple(
        Constant(f"{operation.lower()}_fixed_latency_cycles", "latency_cycles", at(operation=operation))
        for operation in OPERATIONS
    ),
)
