"""Physics against publications: why a published number cannot be right, by the same bounds that our own must keep.

`reasons` gives the sentences; a fact whose own flags disown it (Fact.trusted is False) is not asked. The numbers that
are known to be wrong, data/published/rejected.csv, must each get a reason here, or lie outside our bands.
"""

import re
from collections.abc import Iterator

from microbench.machine.arch import Arch
from microbench.published import Published
from microbench.published.facts import Fact, Rejected

# A board may run above the clock that its specification is written at.
SPEC_SLACK = 1.05
# No dependent ALU result is ready sooner on Volta and later: J18 table 4.1 and H25 read 4 in the stall fields.
SHORTEST_LATENCY_CYCLES = 4.0
INTEGER_LANES = 64  # DPX results per clock and SM

_SUFFIX_UNITS = {
    "_cycles": {"cycles"},
    "_ns": {"ns"},
    "_us": {"us"},
    "_gbs": {"GB/s"},
    "_gibs": {"GiB/s"},
    "_tbs": {"TB/s"},
    "_mbs": {"MB/s"},
    "_gbs_per_sm": {"GB/s/SM"},
    "_bytes_per_clk_sm": {"B/clk/SM"},
    "_bytes_per_clk": {"B/clk"},
    "_bytes": {"B"},
    "_kib": {"KiB"},
    "_mib": {"MiB"},
    "_mhz": {"MHz"},
    "_tflops": {"TFLOPS", "TOPS"},
    "_gflops": {"GFLOPS"},
    "_fma_per_clk_sm": {"FMA/clk/SM"},
    "_flop_per_clk_sm": {"FLOP/clk/SM", "OP/clk/SM"},
    "_inst_per_clk_sm": {"thread-inst/clk/SM", "inst/clk/SM"},
}
_BYTES_PER_S = {"MB/s": 1e6, "GB/s": 1e9, "GiB/s": 2.0**30, "TB/s": 1e12}
_RANGE = re.compile(r"\((?:min|range) ([\d.]+)(?:, max |-)([\d.]+)")
_SHAPE = re.compile(r"_m(\d+)n(\d+)k(\d+)_(?:f32_|f16_|s32_)?([a-z]+\d+)")
# Tensor rate of an input type against f16 on the same core, and the column of specs.csv with its rated peak.
_RATE = {"tf32": 0.5, "f16": 1, "bf16": 1, "fp16": 1, "e4m3": 2, "mxf8": 2, "fp8": 2, "s8": 2, "u8": 2}
_RATE |= {"s4": 4, "u4": 4, "f4": 4, "mxf4": 4, "nvfp4": 4, "fp4": 4, "b1": 16}
_PEAK = {"f16": "tc_fp16_fp32acc_tflops", "fp16": "tc_fp16_fp32acc_tflops", "bf16": "tc_bf16_tflops"}
_PEAK |= {"tf32": "tc_tf32_tflops", "e4m3": "tc_fp8_tflops", "fp8": "tc_fp8_tflops", "s8": "tc_int8_tops"}


def problems(published: Published) -> tuple[str, ...]:
    found = []
    sources = {source.id for source in published.sources}
    for fact in published.facts:
        if fact.trusted:
            found += [f"{fact.gpu}, {fact.quantity} = {fact.value:g}: {why}" for why in reasons(fact, published)]
    cited = [(row.gpu, row.source) for row in published.facts] + [(row.gpu, row.source) for row in published.attention]
    for gpu, source in dict.fromkeys(cited):
        if published.gpu(gpu) is None:
            found.append(f"{gpu} has no row in gpus.csv.")
        if source not in sources:
            found.append(f"{source} has no row in sources.csv.")
    return tuple(dict.fromkeys(found))


def reasons(fact: Fact | Rejected, published: Published) -> tuple[str, ...]:
    """Why this number cannot be right, whatever its flags say; empty where nothing speaks against it."""
    return tuple(_reasons(fact, published))


def _reasons(fact: Fact | Rejected, published: Published) -> Iterator[str]:
    if fact.value is None:
        return
    suffix = max((s for s in _SUFFIX_UNITS if fact.quantity.endswith(s)), key=len, default="")
    if suffix and fact.unit not in _SUFFIX_UNITS[suffix]:
        yield f"its name ends in {suffix}, its unit is {fact.unit}."
    if fact.value < 0:
        yield "it is negative."
    spread = _RANGE.search(fact.conditions)
    if spread and not float(spread[1]) <= fact.value <= float(spread[2]):
        yield f"it lies outside its own range, {spread[1]} to {spread[2]}."
    arch = _arch(fact.gpu, published)
    lower = _shortest(fact.quantity, arch)
    if fact.unit == "cycles" and lower is not None and fact.value * SPEC_SLACK < lower:
        yield f"no such latency can be below {lower:g} cycles."
    upper = _highest(fact, arch, published)
    if upper is not None and fact.value > upper * SPEC_SLACK:
        yield f"the hardware gives at most {upper:.4g} {fact.unit}."


def _arch(gpu_name: str, published: Published) -> Arch | None:
    gpu = published.gpu(gpu_name)
    return gpu.arch if gpu else None


def _shortest(quantity: str, arch: Arch | None) -> float | None:
    """The least latency in cycles: a dependent ALU result, or the time in which the tensor cores can do the work."""
    if re.match(r"(instr|dpx)_latency_", quantity):
        return SHORTEST_LATENCY_CYCLES
    shape = _SHAPE.search(quantity)
    if shape is None or "latency" not in quantity or "_sp_" in quantity or arch is None or arch.limits is None:
        return None
    m, n, k = (int(shape[i]) for i in (1, 2, 3))
    rate = arch.limits.tensor_f16_flops_per_clk * _RATE.get(shape[4], 4)
    # mma.sync belongs to one of the SM's four tensor cores, tcgen05 with two CTAs to two SMs.
    share = 2.0 if "_2sm" in quantity else 0.25 if quantity.startswith("mma_") else 1.0
    return 2 * m * n * k / (rate * share)


def _highest(fact: Fact | Rejected, arch: Arch | None, published: Published) -> float | None:
    """The most the hardware can give, in the fact's unit; None where no document says it."""
    if arch is None or arch.limits is None:
        return None
    limits, spec, name = arch.limits, published.spec(fact.gpu), fact.quantity
    if name.startswith("dpx_throughput_"):
        return float(INTEGER_LANES)
    if fact.unit == "B/clk/SM":
        level = re.match(r"bandwidth_(l1|smem|l2)_", name)
        widths = {"l1": limits.l1_bytes_per_clk, "smem": limits.smem_bytes_per_clk, "l2": limits.l2_bytes_per_clk}
        return float(widths[level[1]]) if level else None
    if fact.unit in ("FMA/clk/SM", "FLOP/clk/SM", "OP/clk/SM"):
        shape = _SHAPE.search(name)
        if shape is None or shape[4] not in _RATE:
            return None
        flops = limits.tensor_f16_flops_per_clk * _RATE[shape[4]] * (2 if "_sp_" in name else 1)
        return flops / 2 if fact.unit == "FMA/clk/SM" else flops
    if spec is None:
        return None
    if fact.unit in _BYTES_PER_S:
        return _bytes_ceiling(name, limits.smem_bytes_per_clk, spec.read("sm_count"), spec.read("boost_clock_mhz"),
                              spec.read("mem_bw_gbs"), _BYTES_PER_S[fact.unit])  # fmt: skip
    if fact.unit in ("TFLOPS", "TOPS") and (column := _peak_column(fact)):
        peak = spec.read(column)
        return peak * (2 if "_sp_" in name else 1) if peak else None
    return None


def _bytes_ceiling(
    name: str, width: int, sms: float | None, mhz: float | None, dram_gbs: float | None, unit: float
) -> float | None:
    if name.startswith("bandwidth_dram_"):
        return dram_gbs * 1e9 / unit if dram_gbs else None
    if name.startswith(("bandwidth_smem_", "bandwidth_l1_")) and "_per_sm" not in name and sms and mhz:
        return sms * mhz * 1e6 * width / unit
    return None


def _peak_column(fact: Fact | Rejected) -> str | None:
    if "MXFP8" in fact.conditions:  # twice the rate of fp8 with f32 accumulators on sm_120
        return None
    shape = _SHAPE.search(fact.quantity)
    gemm = re.match(r"gemm_([a-z]+\d+)_tflops", fact.quantity)
    kind = shape[4] if shape else gemm[1] if gemm else None
    return _PEAK.get(kind) if kind else None
