"""A published board as the machine that a bound asks, and a published number in the unit of a constant of ours."""

from microbench.machine.arch import Machine
from microbench.machine.tensor import tensor_flops_per_clk
from microbench.published import Published
from microbench.published.facts import Fact, Quantity, Rejected


def machine_of(gpu_name: str, published: Published) -> Machine | None:
    """The board by gpus.csv and specs.csv; None where gpus.csv has none of this name.

    Only what was read in a document counts. Without the driver's highest clock, or the number of SMs, no bound in
    seconds exists: the clock is then None.
    """
    gpu = published.gpu(gpu_name)
    if gpu is None:
        return None
    spec = published.spec(gpu_name)

    def read(column: str, factor: float) -> float | None:
        value = spec.read(column) if spec else None
        return None if value is None else value * factor

    sms, l2_bytes = read("sm_count", 1), read("l2_mib", 2**20)
    return Machine(
        gpu=gpu.slug,
        name=" ".join(filter(None, ("NVIDIA", gpu.line, gpu.name))),
        arch=gpu.arch,
        sm_count=int(sms or 0),
        clock_hz=read("max_clock_mhz", 1e6) if sms else None,
        dram_bytes_per_s=read("mem_bw_gbs", 1e9),
        dram_bytes=int(read("mem_size_gb", 2**30) or 0),
        l2_bytes=None if l2_bytes is None else int(l2_bytes),
    )


def converted(fact: Fact | Rejected, rule: Quantity, published: Published) -> float | None:
    """The fact in our constant's unit; None where a number that this takes was never read in a document."""
    if fact.value is None:
        return None
    machine, spec, value = machine_of(fact.gpu, published), published.spec(fact.gpu), fact.value * rule.factor
    if not rule.convert:
        return value
    if machine is None:
        return None
    if rule.convert == "fraction":
        share: float | None = value
    elif rule.convert == "share":
        peak_tflops = spec.read("tc_bf16_tflops") if spec else None
        share = value / peak_tflops if peak_tflops else None
    else:
        divisor = _divisor(rule.convert, machine)
        return value / divisor if divisor else None
    rated = tensor_flops_per_clk(machine)
    return share * rated if share is not None and rated else None


def _divisor(convert: str, machine: Machine) -> float | None:
    sms, clock_hz = machine.sm_count, machine.clock_hz
    return {"per_sm": sms, "per_clk": clock_hz, "per_sm_clk": sms * clock_hz if clock_hz else None}[convert]
