"""Published figures meet the very bounds and orders that our own rows meet."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microbench.bounds import held
from microbench.machine.arch import HOST, Machine, by_name
from microbench.machine.tensor import tensor_flops_per_clk
from microbench.point import Curves, NoValue, Point
from microbench.probe import Constant, Metric, Probe, breaks
from microbench.probes import discover
from microbench.published import load
from microbench.published.facts import Fact, Quantity, Rejected
from microbench.published.machines import machine_of
from microbench.published.plausible import out_of_order, problems, reasons
from microbench.published.unmeasured import unmeasured
from microbench.published.verdict import compare
from tests.data.profiles import constant, profile

TABLES, PROBES = load(), discover()
REJECTED = [row for row in TABLES.rejected if row.gate == "bound"]
BOARD = "H100 SXM5 80GB"
# Quantities of rejected.csv that no probe of ours measures; a row of any other goes through a probe's own bound.
UNMEASURED = ("dpx_latency_", "dpx_throughput_", "tcgen05_mma_", "gemm_fp8_", "latency_tma2d_")


def machine(gpu: str = BOARD) -> Machine:
    found = machine_of(gpu, TABLES)
    assert found is not None
    return found


@pytest.mark.parametrize("row", REJECTED, ids=lambda row: f"{row.gpu}-{row.quantity}")
def test_a_bound_rejects_the_wrong_number(row: Rejected) -> None:
    found = reasons(row, TABLES, PROBES)
    ours = [rule.constant for rule in TABLES.quantities if rule.quantity == row.quantity]
    assert found and bool(ours) != row.quantity.startswith(UNMEASURED)
    assert not ours or all(f"as {name}, " in " ".join(found) and "breaks its bound" in found[0] for name in ours)


def bounded(probe: Probe) -> list[tuple[Constant, Metric]]:
    """The constants that are values of a metric with a bound: no knee, no slope."""
    pairs = [(constant, probe.metric(constant.metric)) for constant in probe.constants if probe.archs != HOST]
    values = [pair for pair in pairs if pair[0].unit in ("", pair[1].unit) and not pair[0].name.endswith("_per_way")]
    return [(constant, metric) for constant, metric in values if metric.bound.why != "unknown"]


BOUNDED = [probe for probe in PROBES if bounded(probe)]


@pytest.mark.parametrize("probe", BOUNDED, ids=lambda probe: probe.name)
def test_a_published_figure_beyond_a_probes_own_bound_is_refused(probe: Probe) -> None:
    for ours, metric in bounded(probe):
        # As if somebody had published the constant.
        point = point_of(probe, ours)
        limits = metric.bound.at(machine(), point)
        tables = replace(TABLES, quantities=(Quantity(ours.name, "published_figure", 1.0, "sku", 0.05),))
        assert limits != (None, None)
        for limit, outwards in zip(limits, (1 / 1.05, 1.05), strict=True):
            if limit is not None:
                fact = Fact(BOARD, "published_figure", "ratio", "MT4G", "exact", value=limit * outwards)
                assert any(f"as {ours.name}" in why for why in reasons(fact, tables, PROBES))
                assert reasons(replace(fact, value=limit), tables, PROBES) == ()


def test_every_probe_of_a_gpu_has_such_a_bound() -> None:
    # Sizes are knees, and what a conflict or a line of code adds is a slope.
    others = {probe.name for probe in PROBES if probe.archs != HOST} - {probe.name for probe in BOUNDED}
    assert others == {"l1_size", "l2_visible_size", "smem_bank_conflicts", "instruction_fetch"}


def point_of(probe: Probe, constant: Constant) -> Point:
    """A point that the constant is read at: what it would come from in a sweep that gives the same everywhere."""
    points = tuple(probe.points())
    try:
        behind = constant.reduce(Curves(points, np.ones((1, len(points))))).points
    except NoValue:  # a level of a curve that has none
        behind = ()
    return next(iter(behind or points))


def test_our_rows_and_published_figures_are_judged_by_one_function() -> None:
    metric = next(probe for probe in PROBES if probe.name == "dram_bandwidth").metric("bandwidth_bytes_per_s")
    fact = Fact(BOARD, "bandwidth_dram_read_gbs", "GB/s", "MT4G", "exact", value=3600.0)
    row = held(metric, 3.6e12, machine(), Point())
    assert row.status == "violated" and reasons(fact, TABLES, PROBES) == (f"as dram_bandwidth_bytes_per_s, {row.why}.",)


def test_a_multiply_add_takes_four_cycles_for_us_and_for_others() -> None:
    metric = next(probe for probe in PROBES if probe.name == "ffma_latency").metric("latency_cycles")
    fact = Fact(BOARD, "instr_latency_ffma_cycles", "cycles", "NMSU", "exact", value=1.97)
    assert metric.bound.at(machine(), Point()) == (4, None) and breaks(1.97, 4, None)
    assert "at least 4 cycles" in reasons(fact, TABLES, PROBES)[0]
    assert reasons(replace(fact, value=4.0), TABLES, PROBES) == ()
    # What no probe of ours chains yet is held against the same number.
    fadd = replace(fact, quantity="instr_latency_fadd_cycles")
    assert "at least 4 cycles" in reasons(fadd, TABLES, PROBES)[0]


PRODUCT = re.compile(r"(?:latency|throughput)\w*_m\d+n\d+k\d+_")


def test_every_published_tensor_product_has_a_bound() -> None:
    ours = {rule.quantity for rule in TABLES.quantities}
    facts = [fact for fact in TABLES.facts if PRODUCT.search(fact.quantity) and fact.quantity not in ours]
    bounds = {fact.quantity: unmeasured(fact) for fact in facts if "f64" not in fact.quantity}
    # The latency of a sparse product has none: how much it skips nobody says. Per second a board's clock is needed.
    named = {name for name, metric in bounds.items() if metric is None}
    assert len(bounds) > 300 and all("_sp_latency" in name for name in named)
    for fact in facts:
        metric = bounds.get(fact.quantity)
        if metric is not None and fact.unit not in ("TFLOPS", "TOPS"):
            assert metric.bound.at(machine(fact.gpu), Point()) != (None, None), fact


@given(st.floats(0.01, 10))
def test_a_latency_below_the_work_is_impossible(ratio: float) -> None:
    # 2 x 256 x 256 x 16 operations at 2 x 8192 a clock
    row = replace(REJECTED[0], gpu="B200", quantity="tcgen05_mma_latency_m256n256k16_bf16_ss_2sm_cycles",
                  value=128 * ratio)  # fmt: skip
    assert bool(reasons(row, TABLES, PROBES)) == breaks(128 * ratio, 128, None)


def test_a_source_whose_l1_is_slower_than_its_l2_contradicts_itself() -> None:
    l1 = Fact(BOARD, "latency_l1_hit_cycles", "cycles", "MT4G", "exact", value=300.0)
    l2 = replace(l1, quantity="latency_l2_hit_cycles", value=280.0)
    (said,) = out_of_order(replace(TABLES, facts=(l1, l2)))
    assert said.startswith(f"{BOARD}, MT4G: l1_latency_cycles is 300 and l2_latency_cycles 280")
    assert said in problems(replace(TABLES, facts=(l1, l2)), PROBES)
    others = (replace(l2, source="RRZE"), replace(l2, gpu="GH200"), replace(l2, flags=("timer-overhead",)))
    for fact in others:  # another source, another board, another method
        assert list(out_of_order(replace(TABLES, facts=(l1, fact)))) == []
    # A source that gives several figures contradicts itself only where each of them does.
    assert list(out_of_order(replace(TABLES, facts=(l1, replace(l1, value=32.0), l2)))) == []


def test_an_rtx_5090_cannot_do_what_an_rtx_pro_6000_can() -> None:
    name = "mma_throughput_m16n8k16_f32_bf16_flop_per_clk_sm"
    fact = Fact("RTX 5090", name, "FLOP/clk/SM", "IMP", "exact", value=1000.0)
    assert reasons(fact, TABLES, PROBES) and not reasons(replace(fact, gpu="RTX PRO 6000 Blackwell"), TABLES, PROBES)
    assert not reasons(replace(fact, value=508.0), TABLES, PROBES)
    block_scaled = replace(fact, quantity="mma_throughput_m16n8k32_f32_mxf8_flop_per_clk_sm", value=1945.0)
    assert not reasons(block_scaled, TABLES, PROBES)


def test_a_board_without_a_clock_or_sms_has_no_bound_in_seconds() -> None:
    unknown = machine("RTX 3090")
    assert unknown.clock_hz is None and unknown.arch == by_name("sm86") and unknown.geforce
    assert tensor_flops_per_clk(unknown) == 512
    assert reasons(Fact("RTX 3090", "gemm_bf16_tflops", "TFLOPS", "ARB", "exact", value=1e6), TABLES, PROBES) == ()
    assert machine_of("H900", TABLES) is None


def test_figures_of_another_rate_are_not_compared() -> None:
    rate = constant("mma_bf16_flops_per_clk_sm", 1010.0)
    pro = profile(rate, gpu="rtx-pro-6000-blackwell-96gb", arch="sm120a")
    geforce = profile(rate, gpu="rtx-5090-32gb", arch="sm120a").model_copy(update={"name": "NVIDIA GeForce RTX 5090"})
    assert compare(pro, TABLES)[0].verdict == "no published value"
    assert compare(geforce, TABLES)[0].verdict == "disagrees"
