"""What an SM gets done in a clock, and how long one result takes: the constants that a static estimate rests on.

Of a GPU with a profile they were measured (data/profiles). Of the V100, which nobody has here, they are published: each
is a row of data/published, named by GPU, quantity and source. Lanes that no probe measures are the documented ones of
the architecture (microbench.machine.arch).
"""

from dataclasses import dataclass, replace

from microbench.errors import DataError, UnknownGpu
from microbench.machine.arch import Arch, Limits, by_name
from microbench.published import Published, load
from microbench.published.names import listed
from microbench.results.profile import Profile

V100 = "v100-pcie"
_PCIE, _SXM2, _ANY = "V100 PCIe", "V100 SXM2", "V100 (variant n/s)"
# Boards whose clock, SMs and bandwidths are published, by slug, and under which name. Memory sizes are one board there.
_MEASURED = {V100: _PCIE, "v100-sxm2": _SXM2, "v100-sxm2-16gb": _SXM2, "v100-sxm2-32gb": _SXM2}
BOARDS = tuple(_MEASURED)


@dataclass(frozen=True)
class Rates:
    """Rates are per clock and SM, latencies cycles from issue until a reader may issue; L2 and DRAM are an SM's share.

    tensor_flops_per_clk    mma.sync of f16 or bf16 to f32, 2 a multiply-add
    conversion_lanes        results of F2F, on the unit of the exponentials
    chain_cycles            what a chain of mma m8n8k4 takes longer than independent ones, each (Volta)
    conflict_cycles         what every further wavefront adds to the latency of shared memory
    icache_bytes            of the instruction cache next to a scheduler; None where nobody has published it
    sources                 where the numbers come from, in words
    taken                   which board stands for a name that several have, a sentence; empty where none is chosen
    """

    gpu: str
    arch: Arch
    sm_count: int
    clock_hz: float
    tensor_flops_per_clk: float
    fp32_lanes: float
    int32_lanes: float
    mufu_lanes: float
    conversion_lanes: float
    smem_bytes_per_clk: float
    l2_bytes_per_clk: float
    dram_bytes_per_clk: float
    smem_cycles: float
    conflict_cycles: float
    mufu_cycles: float
    barrier_cycles: float
    l1_cycles: float
    l2_cycles: float
    dram_cycles: float
    chain_cycles: float
    icache_bytes: float | None
    sources: str
    taken: str = ""

    @property
    def limits(self) -> Limits:
        """What an SM of the architecture holds."""
        assert self.arch.limits is not None
        return self.arch.limits

    def at(self, clock_hz: float) -> "Rates":
        """The same GPU at another SM clock, which L2 and DRAM do not follow."""
        slower = self.clock_hz / clock_hz
        return replace(
            self,
            clock_hz=clock_hz,
            l2_bytes_per_clk=self.l2_bytes_per_clk * slower,
            dram_bytes_per_clk=self.dram_bytes_per_clk * slower,
        )


def measured(profile: Profile) -> Rates:
    """The rates of a GPU whose profile holds mma.sync. Raises KeyError, which names what the profile lacks.

    The clock is the one that its tensor cores kept in bursts. A barrier is taken to be as long as a load from shared
    memory, for which no probe stands: published are 22 cycles of a V100 beside 19, and 25 to 29 of an A100 beside 23.
    """
    arch, value = by_name(profile.arch), profile.value
    flops = value("mma_bf16_flops_per_clk_sm")
    assert arch.limits is not None  # where there are tensor cores
    clock_hz = value("mma_bf16_burst_flops_per_s") / flops / profile.sm_count
    per_clk = 1 / profile.sm_count / clock_hz
    return Rates(
        gpu=profile.gpu,
        arch=arch,
        sm_count=profile.sm_count,
        clock_hz=clock_hz,
        tensor_flops_per_clk=flops,
        fp32_lanes=value("ffma_per_clk_sm"),
        int32_lanes=arch.limits.int32_lanes,
        mufu_lanes=value("mufu_ex2_per_clk_sm"),
        conversion_lanes=arch.limits.mufu_lanes,
        smem_bytes_per_clk=value("smem_bandwidth_bytes_per_clk_sm"),
        l2_bytes_per_clk=value("l2_bandwidth_bytes_per_s") * per_clk,
        dram_bytes_per_clk=value("dram_bandwidth_bytes_per_s") * per_clk,
        smem_cycles=value("smem_latency_cycles"),
        conflict_cycles=value("smem_conflict_latency_cycles_per_way"),
        mufu_cycles=value("mufu_ex2_latency_cycles"),
        barrier_cycles=value("smem_latency_cycles"),
        l1_cycles=value("l1_latency_cycles"),
        l2_cycles=value("l2_latency_cycles"),
        dram_cycles=value("dram_latency_cycles"),
        chain_cycles=0.0,  # ptxas counts these latencies by stalls
        icache_bytes=None,
        sources=f"measured: data/profiles/{profile.stem}.json",
    )


def published(gpu: str = V100) -> Rates:
    """The rates of a V100 at its board's highest clock, as others measured them. Raises UnknownGpu, DataError.

    Bandwidths are the board's own. So is the latency of DRAM; the other latencies are cycles of one chip, and were
    measured on the PCIe board alone, as were reads of DRAM, of which both boards have 900 GB/s.
    """
    if gpu not in _MEASURED:
        raise UnknownGpu(f"Of {gpu} too little is published for a static estimate; there is {listed(BOARDS)}.")
    facts, arch, board = load(), by_name("sm70"), _MEASURED[gpu]
    row = next(each for each in facts.gpus if each.slug == gpu)
    spec = facts.spec(row.name)
    assert spec is not None and spec.sm_count and spec.max_clock_mhz and arch.limits is not None
    clock_hz = spec.max_clock_mhz * 1e6
    gb_per_s = 1e9 / spec.sm_count / clock_hz

    def fact(name: str, quantity: str, source: str, conditions: str = "") -> float:
        return _fact(facts, name, quantity, source, conditions)

    conflict = "latency_smem_bank_conflict_cycles"
    return Rates(
        gpu=gpu,
        arch=arch,
        sm_count=spec.sm_count,
        clock_hz=clock_hz,
        tensor_flops_per_clk=fact(_ANY, "mma_throughput_m8n8k4_f32_f16_flop_per_clk_sm", "1CAT"),
        fp32_lanes=arch.limits.fp32_lanes,
        int32_lanes=arch.limits.int32_lanes,
        mufu_lanes=arch.limits.mufu_lanes,
        conversion_lanes=next(
            rate.results_per_clk_sm
            for rate in facts.rates
            if (rate.compute_capability, rate.operation) == ("7.x", "cvt_other")
        ),
        smem_bytes_per_clk=fact(board, "bandwidth_smem_gbs_per_sm", "J18") * 1e9 / clock_hz,
        l2_bytes_per_clk=fact(board, "bandwidth_l2_gbs", "J18") * gb_per_s,
        dram_bytes_per_clk=fact(_PCIE, "bandwidth_dram_read_gbs", "GPUB") * gb_per_s,
        smem_cycles=fact(_PCIE, "latency_smem_cycles", "J18"),
        conflict_cycles=fact(_PCIE, conflict, "J18", "2-way") - fact(_PCIE, conflict, "J18", "1-way"),
        mufu_cycles=fact(_PCIE, "instr_latency_mufu_cycles", "J18"),
        barrier_cycles=fact(_ANY, "latency_syncthreads_cycles", "Z20"),
        l1_cycles=fact(_PCIE, "latency_l1_hit_cycles", "J18"),
        l2_cycles=fact(_PCIE, "latency_l2_hit_cycles", "RRZE"),
        dram_cycles=fact(board, "latency_dram_cycles", "RRZE" if board == _PCIE else "J18"),
        chain_cycles=fact(_ANY, "mma_latency_m8n8k4_f32_f16_cycles", "1CAT")
        - fact(_ANY, "mma_issue_m8n8k4_f32_f16_cycles", "1CAT"),
        icache_bytes=fact(_PCIE, "size_icache_l0_bytes", "J18"),
        sources="published: 1CAT, J18, Z20, RRZE, GPUB and CUDATP of data/published; nobody here has a V100",
    )


def _fact(facts: Published, gpu: str, quantity: str, source: str, conditions: str) -> float:
    for fact in facts.facts:
        named = (fact.gpu, fact.quantity, fact.source) == (gpu, quantity, source)
        if named and fact.conditions.startswith(conditions) and fact.value is not None:
            return fact.value
    raise DataError(f"data/published has no {quantity} of {gpu} by {source}, which the static estimate needs.")
