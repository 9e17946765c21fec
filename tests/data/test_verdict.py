"""Verdicts follow from the rows' own fields (board, trust, method, confidence), never from whether the numbers fit."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microbench.published import Published, load
from microbench.published.facts import OTHER_METHOD, UNTRUSTED, Fact, Gpu
from microbench.published.verdict import Comparison, accept, compare
from tests.data.profiles import constant, profile

TABLES = load()


def verdict(
    name: str, value: float, gpu: str = "h100-sxm-80gb", arch: str = "sm90a", spread: float = 0.001
) -> Comparison:
    return compare(profile(constant(name, value, spread), gpu=gpu, arch=arch))[0]


def with_rows(*facts: Fact) -> Published:
    return replace(TABLES, facts=facts)


def l1(value: float, gpu: str, *, confidence: str = "exact", flags: tuple[str, ...] = ()) -> Fact:
    return Fact(gpu, "latency_l1_hit_cycles", "cycles", "MT4G", confidence, value=value, flags=flags)  # type: ignore[arg-type]


def on_h100(published: Published, value: float = 32.0, gpu: str = "h100-sxm-80gb") -> Comparison:
    return compare(profile(constant("l1_latency_cycles", value), gpu=gpu), published)[0]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("l1_latency_cycles", 32.1, "agrees"),
        ("l1_latency_cycles", 40.7, "disagrees"),
        ("smem_index_latency_cycles", 29.0, "agrees"),
        ("smem_latency_cycles", 23.1, "method differs"),
        ("dram_latency_cycles", 700.0, "method differs"),
        ("ffma_latency_cycles", 4.0, "no published value"),
        ("ffma_per_clk_sm", 127.0, "agrees"),
        ("ffma_per_clk_sm", 64.0, "disagrees"),
        ("mma_bf16_flops_per_clk_sm", 2600.0, "agrees"),
        ("wgmma_bf16_zeros_flops_per_clk_sm", 4040.0, "agrees"),
        ("wgmma_bf16_zeros_flops_per_clk_sm", 2600.0, "disagrees"),
        ("a_constant_nobody_knows", 1.0, "no published value"),
    ],
)
def test_verdicts_on_an_h100(name: str, value: float, expected: str) -> None:
    assert verdict(name, value).verdict == expected


@given(st.floats(1, 1e4))
def test_the_method_verdict_does_not_depend_on_the_number(value: float) -> None:
    assert verdict("smem_latency_cycles", value).verdict == "method differs"
    assert verdict("l1_latency_cycles", value).verdict in ("agrees", "disagrees")


@pytest.mark.parametrize("flag", sorted(OTHER_METHOD))
def test_a_row_that_timed_something_else_says_so(flag: str) -> None:
    found = on_h100(with_rows(l1(32.0, "H100 SXM5 80GB", flags=(flag,))))
    assert found.verdict == "method differs" and flag in found.why


@pytest.mark.parametrize("flag", sorted(UNTRUSTED))
def test_a_row_that_nobody_trusts_decides_nothing(flag: str) -> None:
    assert on_h100(with_rows(l1(32.0, "H100 SXM5 80GB", flags=(flag,)))).verdict == "no published value"


def test_a_row_of_the_same_method_beats_the_same_board() -> None:
    found = on_h100(with_rows(l1(38.0, "H100 SXM5 80GB", flags=("timer-overhead",)), l1(32.1, "GH200")))
    assert (found.verdict, found.gpu, found.rows) == ("agrees", "GH200", 1)


def test_the_best_row_is_the_same_board_then_the_surest() -> None:
    facts = (l1(31.0, "GH200"), l1(32.0, "H100 SXM5 80GB", confidence="secondary"), l1(33.0, "H100 SXM5 80GB"))
    found = on_h100(with_rows(*facts))
    assert (found.published, found.published_low, found.published_high, found.rows) == (33.0, 31.0, 33.0, 3)
    assert on_h100(with_rows(*facts[:2])).published == 32.0


def test_cycles_compare_over_boards_of_a_chip_and_bandwidths_do_not() -> None:
    assert verdict("l1_latency_cycles", 32.0, gpu="h200-sxm-141gb").gpu in {"H800 PCIe", "GH200"}
    assert verdict("dram_bandwidth_bytes_per_s", 2.76e12, gpu="h200-sxm-141gb").gpu == "H200 SXM"
    assert verdict("dram_bandwidth_bytes_per_s", 2.76e12, gpu="h100-sxm-64gb").verdict == "no published value"
    assert verdict("l1_latency_cycles", 32.0, gpu="a100-sxm4-80gb", arch="sm80").gpu.startswith("A100")


def test_a_cut_of_a_gpu_is_not_the_board() -> None:
    whole, cut = (verdict("dram_bandwidth_bytes_per_s", 2.7e12, gpu=f"h100-sxm-80gb{c}") for c in ("", "-mig-1g.10gb"))
    assert whole.verdict == "agrees" and cut.verdict == "no published value"


def test_a_model_is_not_another_one_that_begins_alike() -> None:
    rows = with_rows(l1(32.0, "RTX 2070"), l1(50.0, "RTX 2070 SUPER"))
    plain, other = (constant("l1_latency_cycles", value) for value in (32.0, 50.0))
    assert compare(profile(plain, gpu="rtx-2070-8gb", arch="sm75"), rows)[0].published_high == 32.0
    assert compare(profile(other, gpu="rtx-2070-super-8gb", arch="sm75"), rows)[0].published_low == 50.0
    assert compare(profile(plain, gpu="rtx-2070-ti-8gb", arch="sm75"), rows)[0].verdict == "no published value"


def test_a_chip_is_known_by_its_board_or_by_being_the_only_one() -> None:
    assert on_h100(with_rows(l1(32.0, "H100 SXM5 80GB")), gpu="h100-new-80gb").verdict == "agrees"
    chips = replace(
        with_rows(l1(32.0, "A")), gpus=(Gpu("A", "Hopper", "9.0", "X", "h1"), Gpu("B", "Hopper", "9.0", "Y"))
    )
    assert on_h100(chips, gpu="h100-sxm-80gb").verdict == "no published value"
    assert on_h100(chips, gpu="h1-80gb").verdict == "agrees"


@pytest.mark.parametrize(("gpu", "arch"), [("host", "host"), ("some-cpu", "host"), ("x", "sm999")])
def test_a_machine_without_literature_has_no_published_value(gpu: str, arch: str) -> None:
    assert verdict("l1_latency_cycles", 32.0, gpu=gpu, arch=arch).verdict == "no published value"


@given(st.floats(20, 50), st.floats(0, 0.1))
def test_agreement_is_where_the_interval_meets_the_widened_range(value: float, spread: float) -> None:
    published = with_rows(l1(32.0, "GH200"), l1(36.0, "H800 PCIe"))
    ours = constant("l1_latency_cycles", value, spread)
    meets = ours.high >= 32.0 * 0.95 and ours.low <= 36.0 * 1.05
    assert (compare(profile(ours), published)[0].verdict == "agrees") == meets


@given(st.randoms(use_true_random=False))
def test_the_order_of_the_rows_changes_nothing(rng: random.Random) -> None:
    facts = [fact for fact in TABLES.facts if fact.quantity.startswith(("latency_", "bandwidth_l2"))]
    names = ("l1_latency_cycles", "l2_latency_cycles", "l2_bandwidth_bytes_per_clk_sm", "smem_latency_cycles")
    ours = profile(*(constant(name, 100.0) for name in names))
    straight = compare(ours, with_rows(*facts))
    rng.shuffle(facts)
    assert compare(ours, with_rows(*facts)) == straight


def test_the_second_method_is_compared_with_the_same_rows() -> None:
    assert compare(profile(constant("l1_latency_cycles_numba", 32.1, method="numba")))[0].verdict == "agrees"
    assert compare(profile(constant("l1_latency_cycles_numba", 32.1)))[0].verdict == "no published value"


def test_every_constant_gets_one_verdict_in_order() -> None:
    names = ("b", "l1_latency_cycles", "a")
    assert tuple(c.constant for c in compare(profile(*(constant(n, 1.0) for n in names)))) == names


def test_bands_are_inside_outside_or_not_measured() -> None:
    found = {
        a.constant: a.verdict
        for a in accept(
            profile(
                constant("l1_latency_cycles", 32.4),
                constant("ffma_latency_cycles", 29.0),
                constant("dram_bandwidth_bytes_per_s", 3.35e12),
                constant("smem_bandwidth_bytes_per_clk_sm", 124.9),
            )
        )
    }
    assert found.pop("l1_latency_cycles") == "inside" and found.pop("ffma_latency_cycles") == "outside"
    assert found.pop("dram_bandwidth_bytes_per_s") == "inside"
    assert found.pop("smem_bandwidth_bytes_per_clk_sm") == "outside" and set(found.values()) == {"not measured"}


def test_bands_of_a_board_are_not_for_another_one() -> None:
    pcie = {band.constant for band in accept(profile(gpu="h100-pcie-80gb"))}
    assert "l1_latency_cycles" in pcie and "dram_bandwidth_bytes_per_s" not in pcie
    assert accept(profile(gpu="a100-sxm4-80gb", arch="sm80")) == ()
