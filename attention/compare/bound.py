"""What no GPU of a kind can do better: seconds below it are an error of the measurement, not a result."""

from attention.problem import AttentionProblem
from attention.timed.timing import PRODUCTS, Pass
from microbench.machine.arch import Machine
from microbench.machine.tensor import tensor_flops_per_clk


def bound_seconds(machine: Machine, problem: AttentionProblem, passes: Pass = "forward") -> float | None:
    """Seconds that the products of the scores that are seen take at the rated clock, or reading Q, K and V from DRAM.

    Rates are the architecture's documented ones (microbench.machine.arch). None where a rate or the clock is unknown.
    """
    limits = machine.arch.limits
    if limits is None or machine.clock_hz is None or machine.dram_bytes_per_s is None:
        return None
    # A kernel may add to f16 accumulators, which no board halves.
    lanes = tensor_flops_per_clk(machine, "f16", "f16") if problem.element_bytes <= 4 else 2.0 * limits.fp32_lanes
    assert lanes is not None  # where there are limits there is a rate
    flops = 2.0 * (problem.head_dim + problem.head_dim_v) * problem.scores * PRODUCTS[passes]
    return max(flops / (lanes * machine.sm_count * machine.clock_hz), _read_bytes(problem) / machine.dram_bytes_per_s)


def _read_bytes(problem: AttentionProblem) -> int:
    """Bytes that must come from DRAM where the L2 is cold: Q, and K and V where no band leaves keys out."""
    rows, keys = problem.mean_lengths
    values = problem.heads_q * rows * problem.head_dim
    if problem.edges.open:
        values += problem.heads_kv * keys * (problem.head_dim + problem.head_dim_v)
    return problem.batch * values * problem.element_bytes
