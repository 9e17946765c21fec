"""arch.py and tensor.py against the documents in data/published: each number equal, or the difference listed here."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from microbench import paths
from microbench.machine.arch import ARCHS, Arch, Limits, by_name
from microbench.machine.tensor import tensor_flops_per_clk
from microbench.published import load
from microbench.published.facts import Gpu
from microbench.published.machines import machine_of

TABLES = load()
GPUS = [arch for arch in ARCHS if "cuda" in arch.features]
KIB = 1024
# Field of Limits: the rows of cc_limits.csv, of cc_op_throughput.csv and the columns of specs.csv that say the same.
SAME: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "fp32_lanes": ((), ("fp32_add_mul_fma",), ("fp32_cores_per_sm",)),
    "int32_lanes": ((), ("int32_add_sub", "int32_min_max", "compare_min_max"), ()),
    "mufu_lanes": ((), ("fp32_rcp_rsqrt_lg2_ex2_sin_cos", "mufu_ex2"), ("mufu_per_clk_sm",)),
    "smem_bytes_per_clk": (("smem_banks",), (), ()),
    "registers": (("regs_per_sm",), (), ("regs_per_sm",)),
    "smem_bytes": (("max_smem_per_sm_kib",), (), ("smem_per_sm_kib",)),
    "smem_bytes_per_block": (("max_smem_per_block_kib",), (), ("smem_per_block_kib",)),
    "max_warps": (("max_warps_per_sm",), (), ("max_warps_per_sm",)),
    "max_blocks": (("max_blocks_per_sm",), (), ("max_blocks_per_sm",)),
}
FACTOR = {"smem_banks": 4} | dict.fromkeys(
    ("max_smem_per_sm_kib", "smem_per_sm_kib", "max_smem_per_block_kib", "smem_per_block_kib"), KIB
)
# Fields that no document of NVIDIA's gives; another test, or measurements, hold them.
UNDOCUMENTED = {
    "l1_bytes_per_clk": "one 128-byte line, 127 on an H100 by RRZE and by us; on Turing 64, as its shared memory",
    "l2_bytes_per_clk": "128 on Hopper, by Nsight Compute's peak of xbar2l1tex (4 sectors); a B200's 90 needs 128",
    "alu_latency_cycles": "what ptxas leaves: static_latency.csv",
    "tensor_f16_flops_per_clk": "several rows each, below",
}
# Field and architecture without a document in our tables: the number is from memory, as in specs.csv.
UNREAD = {
    **{("int32_lanes", name): "as sm80 and sm90a" for name in ("sm89", "sm103a")},
    ("fp32_lanes", "sm103a"): "recalled in specs.csv; a B300 gives 112.6 (QRC)",
    ("smem_bytes_per_block", "sm70"): "recalled in specs.csv",
    ("smem_bytes_per_clk", "sm70"): "J18 reads 128 bytes a clock as its theory",
}
# Field and architecture whose number is deliberately another one than a document's.
DIFFERENT = {("smem_bytes_per_clk", "sm75"): "32 banks, of which half serve a clock: J19's theory of a T4 is 64 bytes"}
# The tensor peak of a board over its SMs and highest clock is not the rate of its architecture, and why.
OTHER_PEAK = {
    "H100 PCIe 80GB": "rated at 1620 MHz",
    "H100 SXM5 80GB": "rated at 1830 MHz",
    "B200 (HGX)": "rated near 1850 MHz",
    "GB200 (per GPU)": "rated near 2010 MHz",
    "RTX 5090": "rated at its boost clock, 2407 MHz; the driver admits more",
}


@dataclass(frozen=True)
class Said:
    where: str
    value: float


def said(arch: Arch, field: str) -> Iterator[Said]:
    limits, rates, columns = SAME[field]
    for row in TABLES.limits:
        if row.quantity in limits and covers(row.compute_capability, arch):
            yield Said(f"cc_limits {row.quantity}", float(row.value) * FACTOR.get(row.quantity, 1))
    for rate in TABLES.rates:
        if rate.operation in rates and covers(rate.compute_capability, arch):
            yield Said(f"cc_op_throughput {rate.operation}", rate.results_per_clk_sm)
    for spec in TABLES.specs:
        if spec.compute_capability == arch.capability:
            for column in columns:
                value = spec.read(column)
                if value is not None:
                    yield Said(f"specs {spec.gpu} {column}", value * FACTOR.get(column, 1))


def covers(capability: str, arch: Arch) -> bool:
    return capability in (arch.capability, f"{arch.compute_capability[0]}.x")


def test_every_field_has_its_document_or_says_that_none_exists() -> None:
    assert set(SAME) | set(UNDOCUMENTED) == set(Limits.__dataclass_fields__) and not set(SAME) & set(UNDOCUMENTED)


@pytest.mark.parametrize("field", SAME)
@pytest.mark.parametrize("arch", GPUS, ids=lambda arch: arch.name)
def test_a_number_of_arch_is_the_documented_one(arch: Arch, field: str) -> None:
    ours, found = getattr(arch.limits, field), list(said(arch, field))
    assert bool([one for one in found if one.value != ours]) == ((field, arch.name) in DIFFERENT)
    assert bool(found) != ((field, arch.name) in UNREAD)


def test_dependent_arithmetic_takes_what_ptxas_leaves() -> None:
    with (paths.SHIPPED / "verification/static_latency.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["instruction"] in ("FFMA", "FADD", "FMUL", "IMAD")]
    assert {row["arch"] for row in rows} == {arch.name for arch in GPUS}
    for row in rows:
        limits = by_name(row["arch"]).limits
        assert limits is not None and int(row["cycles"]) == limits.alu_latency_cycles


# Rates per type, of whatever board they were documented for.
DOCUMENTED = [
    ("RTX 5090", operation, operand, accumulator)
    for operation, operand, accumulator in (
        ("tensor_fp16_fp16acc_flop", "f16", "f16"),
        ("tensor_fp16_fp32acc_flop", "f16", "f32"),
        ("tensor_bf16_flop", "bf16", "f32"),
        ("tensor_tf32_flop", "tf32", "f32"),
        ("tensor_int8_op", "s8", "s32"),
        ("tensor_fp8_fp32acc_flop", "e4m3", "f32"),
        ("tensor_fp8_fp16acc_flop", "e4m3", "f16"),
        ("tensor_mxf8_flop", "mxf8", "f32"),
        ("tensor_mxf4_nvfp4_flop", "nvfp4", "f32"),
    )
]


@pytest.mark.parametrize(("board", "operation", "operand", "accumulator"), DOCUMENTED, ids=lambda text: text)
def test_the_rtx_blackwell_whitepapers_rates_are_those_of_a_geforce(
    board: str, operation: str, operand: str, accumulator: str
) -> None:
    (documented,) = [rate.results_per_clk_sm for rate in TABLES.rates if rate.operation == operation]
    machine = machine_of(board, TABLES)
    assert machine is not None and tensor_flops_per_clk(machine, operand, accumulator) == documented


def test_every_documented_tensor_rate_is_checked() -> None:
    tensor = {rate.operation for rate in TABLES.rates if rate.operation.startswith("tensor_")}
    assert tensor == {operation for _, operation, *_ in DOCUMENTED}


PEAKS = [fact for fact in TABLES.facts if fact.quantity.startswith("tensor_peak_") and "_f64_" not in fact.quantity]


@pytest.mark.parametrize("fact", PEAKS, ids=lambda fact: f"{fact.gpu}-{fact.quantity}")
def test_rates_that_others_quote_from_documents_are_ours(fact) -> None:  # type: ignore[no-untyped-def]
    operand, machine = fact.quantity.split("_")[2], machine_of(fact.gpu, TABLES)
    assert machine is not None and fact.value is not None
    flops = fact.value * (2 if fact.unit == "FMA/clk/SM" else 1)
    assert tensor_flops_per_clk(machine, {"f6": "e4m3"}.get(operand, operand)) == flops


def test_a_data_sheets_tensor_peak_is_the_rate_at_its_clock() -> None:
    off = {}
    for spec in TABLES.specs:
        gpu = next(gpu for gpu in TABLES.gpus if gpu.spec == spec.gpu)
        for column, operand in (("tc_fp16_fp32acc_tflops", "f16"), ("tc_tf32_tflops", "tf32"), ("tc_int8_tops", "s8")):
            peak, share = spec.read(column), rated_share(gpu, operand)
            if peak is not None and share is not None and abs(peak * 1e12 / share - 1) > 0.01:
                off[spec.gpu] = peak * 1e12 / share
    assert off.keys() == OTHER_PEAK.keys() and all(0.5 < share < 1 for share in off.values())


def rated_share(gpu: Gpu, operand: str) -> float | None:
    """FLOP/s of the board at its highest clock by our table; None where its SMs or clock were not read."""
    machine = machine_of(gpu.name, TABLES)
    assert machine is not None
    rate = tensor_flops_per_clk(machine, operand)
    return rate * machine.sm_count * machine.clock_hz if rate and machine.clock_hz else None


def test_a_geforce_has_half_the_rate_of_a_professional_board_of_its_chip() -> None:
    geforce, pro = machine_of("RTX 5090", TABLES), machine_of("RTX PRO 6000 Blackwell", TABLES)
    assert geforce is not None and pro is not None and geforce.arch == pro.arch
    assert (tensor_flops_per_clk(geforce, "bf16"), tensor_flops_per_clk(pro, "bf16")) == (512, 1024)
    for spec, clock_hz, rate in (("RTX 5090", 2.407e9, 512), ("RTX PRO 6000 Blackwell", 2.617e9, 1024)):
        row = next(row for row in TABLES.specs if row.gpu == spec)
        assert row.tc_bf16_tflops is not None and row.sm_count is not None
        assert row.tc_bf16_tflops * 1e12 == pytest.approx(row.sm_count * clock_hz * rate, rel=1e-3)
