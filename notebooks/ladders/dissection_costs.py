"""What an instruction costs on each generation: ptxas's stalls, latencies and rates, each with its source."""

from dataclasses import dataclass

from microbench import published
from microbench.machine import arch
from microbench.published.facts import CcRate
from microbench.verify.tables import LatencyRow, read
from notebooks.ladders.dissection import EXPONENTIALS, Generation, Quoted, facts, quoted


@dataclass(frozen=True)
class Asked:
    """An instruction, as each table calls it: a row of static_latency.csv, one of our constants, facts, and rates."""

    label: str
    static: str = ""
    constant: str = ""
    facts: tuple[str, ...] = ()
    rates: tuple[str, ...] = ()
    measured_rate: str = ""
    chained: bool = False  # the facts are of an instruction within a chain, not of its first result


INSTRUCTIONS = (
    Asked("FADD", "FADD", "fadd_fixed_latency_cycles", ("instr_latency_fadd_cycles",), ("fp32_add_mul_fma",)),
    Asked(
        "FFMA", "FFMA", "ffma_latency_cycles", ("instr_latency_ffma_cycles",), ("fp32_add_mul_fma",), "ffma_per_clk_sm"
    ),
    Asked("FMNMX", "FMNMX", "", ("instr_latency_fmnmx_cycles",), ("compare_min_max", "fp32_min_max")),
    Asked("IMAD", "IMAD", "imad_fixed_latency_cycles", ("instr_latency_imad_cycles",), ("int32_mul_mad",)),
    Asked("HFMA2", "HFMA2", "", ("instr_latency_hfma2_cycles",), ("fp16_add_mul_fma",)),
    Asked("SHFL", "SHFL", "", ("instr_latency_shfl_cycles",), ("warp_shuffle",)),
    Asked(
        "MUFU.EX2",
        "MUFU.EX2",
        "mufu_ex2_latency_cycles",
        ("instr_latency_mufu_ex2_cycles", "instr_latency_mufu_cycles"),
        ("mufu_ex2", "fp32_rcp_rsqrt_lg2_ex2_sin_cos"),
        EXPONENTIALS,
    ),
    Asked("DFMA", "DFMA", "", ("instr_latency_dfma_cycles",), ("fp64_add_mul_fma",)),
    Asked("mma.m8n8k4", "m8n8k4 f16", "", ("mma_latency_m8n8k4_f32_f16_cycles",), chained=True),
    Asked("mma.m16n8k16", "m16n8k16 f16", "mma_f16_latency_cycles", ("mma_latency_m16n8k16_f32_f16_cycles",)),
    Asked("wgmma.m64n256k16", "", "wgmma_bf16_latency_cycles"),
    Asked("tcgen05.mma.m128n256k16", "", "", ("tcgen05_mma_latency_m128n256k16_bf16_ss_1sm_cycles",)),
)


@dataclass(frozen=True)
class Cost:
    """What an instruction costs. `static` is ptxas's count; `least` where a scoreboard makes it only the least.

    latency in cycles, rate in results per clock and SM; None where nobody gives it. `here` is False where the
    architecture has no such instruction, `rated` where the rate is asked of another table, and `chained` where the
    latency is what one more instruction adds to a chain, which may be less than what its first result takes.
    """

    label: str
    static: int | None
    least: bool
    latency: Quoted | None
    rate: Quoted | None
    rated: bool
    here: bool
    chained: bool = False


def costs(generation: Generation) -> tuple[Cost, ...]:
    """Every instruction, in the same order for every generation."""
    rows = {row.instruction: row for row in read(LatencyRow) if row.arch == generation.profile.arch}
    found = []
    for asked in INSTRUCTIONS:
        row = rows.get(asked.static)
        latency = _latency(generation, asked)
        found.append(
            Cost(
                asked.label,
                max(map(int, row.cycles.split())) if row else None,
                bool(row) and row.scoreboard != "no" if row else False,
                latency,
                _rate(generation, asked),
                bool(asked.rates),
                bool(row or latency),
                asked.chained and latency is not None,
            )
        )
    return tuple(found)


def _latency(generation: Generation, asked: Asked) -> Quoted | None:
    profile = generation.profile
    if asked.constant in profile:
        return quoted(profile[asked.constant])
    found = next((fact for name in asked.facts for fact in facts(generation, name)), None)
    return Quoted(found.value, found.source, found.gpu) if found and found.value else None


def _rate(generation: Generation, asked: Asked) -> Quoted | None:
    if generation.measured and asked.measured_rate in generation.profile:
        return quoted(generation.profile[asked.measured_rate])
    row = next((found for name in asked.rates for found in rates(generation, name)), None)
    return Quoted(row.results_per_clk_sm, row.source, row.compute_capability) if row else None


def rates(generation: Generation, operation: str) -> tuple[CcRate, ...]:
    """What documents say of the architecture, its own capability before its family's."""
    capability = arch.by_name(generation.profile.arch).capability
    family = f"{capability.partition('.')[0]}.x"
    rows = [row for row in published.load().rates if row.operation == operation]
    return tuple(row for wanted in (capability, family) for row in rows if row.compute_capability == wanted)
