"""Which unit of an SM an instruction takes, for how many cycles, and when its result stands.

Every scheduler of the four has its own tensor core, FP32, integer and special-function lanes, a quarter of what the SM
has; the port to shared memory and L1 is the SM's. An instruction of fixed latency has it in the stall counts of ptxas.
"""

import math
from dataclasses import dataclass
from typing import Literal

from microbench.issue.rates import Rates
from microbench.sass.instruction import Instruction

Pipe = Literal["tensor", "fp32", "integer", "special", "port", "none"]
SCHEDULERS, LANES = 4, 32
WAVEFRONT_BYTES = 128

# FLOP of a warp's instruction. HMMA.884 is a quarter of m8n8k4: 512 by NCU's counters (1CAT in data/published).
_TENSOR_FLOPS = {"16816": 4096, "1688": 2048, "884": 512}
_SPECIAL, _CONVERSIONS = ("MUFU",), ("F2F", "F2I", "I2F", "FRND")
_FP32 = ("FFMA", "FMUL", "FADD", "HFMA2", "HADD2", "HMUL2")
_PORT = ("LDS", "STS", "LDSM", "STSM", "LDG", "STG", "LDGSTS", "LDL", "STL", "SHFL", "ATOMS")
_NO_PIPE = (
    *("BRA", "BSSY", "BSYNC", "WARPSYNC", "NOP", "BAR", "DEPBAR", "LDGDEPBAR", "EXIT", "YIELD", "BMOV", "RET", "CALL"),
    *("S2R", "S2UR", "R2UR", "LDC", "VOTE", "ERRBAR", "MEMBAR", "CCTL"),
)


@dataclass(frozen=True)
class Use:
    """`cycles` is how long a pipe is taken, `latency` when the result stands; both from the pipe's turn on."""

    pipe: Pipe
    cycles: float
    latency: float
    memory_bytes: int = 0  # of a warp, through L2


def tensor_flops(instruction: Instruction) -> int:
    """Operations of one warp, 2 a multiply-add; 0 of what is no tensor instruction that this table knows."""
    if not instruction.head.endswith("MMA"):
        return 0
    return next((_TENSOR_FLOPS[each] for each in instruction.modifiers if each in _TENSOR_FLOPS), 0)


def use_of(instruction: Instruction, rates: Rates, memory_cycles: float) -> Use:
    """What an instruction takes. `memory_cycles`: the latency of the level that serves global loads."""
    head = instruction.head
    flops = tensor_flops(instruction)
    if flops:
        cycles = flops * SCHEDULERS / rates.tensor_flops_per_clk
        return Use("tensor", cycles, cycles + rates.chain_cycles)
    if instruction.predicate == "!PT":  # ptxas' placeholders before LDGSTS
        return Use("none", 0.0, 0.0)
    if head in _SPECIAL:
        return Use("special", _cycles(rates.mufu_lanes), rates.mufu_cycles)
    if head in _CONVERSIONS:
        return Use("special", _cycles(rates.conversion_lanes), rates.mufu_cycles)
    if head in _FP32:
        return Use("fp32", _cycles(rates.fp32_lanes), 0.0)
    if head == "IMAD":  # on the multipliers, at the rate of integer ones
        return Use("fp32", _cycles(rates.int32_lanes), 0.0)
    if head in _PORT:
        return _port(instruction, rates, memory_cycles)
    if head in _NO_PIPE or head.startswith("U"):
        return Use("none", 0.0, rates.smem_cycles)  # what raises a scoreboard goes by the queue of shared memory
    return Use("integer", _cycles(rates.int32_lanes), rates.smem_cycles)


def _cycles(lanes: float) -> float:
    return LANES * SCHEDULERS / lanes


def _port(instruction: Instruction, rates: Rates, memory_cycles: float) -> Use:
    """A wavefront for every 128 bytes of a warp: of bank conflicts a trace of our kernels finds none."""
    head, modifiers = instruction.head, instruction.modifiers
    lane_bytes = 16 if "128" in modifiers else 8 if "64" in modifiers else 4
    wavefronts = math.ceil(lane_bytes * LANES / WAVEFRONT_BYTES)
    if head in ("LDSM", "STSM"):
        wavefronts = int(modifiers[-1]) if modifiers[-1] in ("2", "4") else 1
    cycles = wavefronts * WAVEFRONT_BYTES / rates.smem_bytes_per_clk
    if head in ("LDG", "LDGSTS"):
        return Use("port", cycles, memory_cycles, lane_bytes * LANES)
    base = rates.l1_cycles if head == "LDL" else rates.smem_cycles
    return Use("port", cycles, base + (wavefronts - 1) * rates.conflict_cycles)
