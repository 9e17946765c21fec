"""What it takes to copy a mask whose rows are no whole 16 bytes, before the kernel that brings them by TMA.

The copy is torch's, which takes its elements one by one, as integers of as many bytes as rows are made of
(kernels.launch.aligned). How many masks a call has no problem says: one for all heads and sequences is counted.
"""

from functools import lru_cache

from attention.choose.coefficients.table import LANES, SCHEDULERS, TMA_ROWS, of
from attention.choose.prediction import SECONDS, Term
from attention.choose.rates import DRAM, KEPT_MACHINES, Machine, launch_of
from attention.features.mask import element_bytes
from attention.problem import AttentionProblem


@lru_cache(maxsize=16 * KEPT_MACHINES)
def mask_laid_out(machine: Machine, problem: AttentionProblem) -> tuple[Term, ...]:
    """Empty where there is no mask, or rows of whole 16 bytes."""
    row = element_bytes(problem) * problem.seq_kv
    if row % TMA_ROWS == 0:
        return ()
    copies, dram = problem.seq_q * row / (row & -row), machine.value(DRAM)
    lanes = machine.profile.sm_count * SCHEDULERS * LANES * machine.needed_clock_hz
    seconds = max(of("laid_out_instructions") * copies / lanes, 2 * problem.seq_q * row / dram)
    return (Term("mask laid out anew", "laid out", seconds + sum(map(SECONDS, launch_of(machine))), DRAM, dram),)
