"""A constant measured on a busy machine is named, and nothing is chosen by it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention.choose.choose import choose
from attention.choose.explain.explain import explain_on
from attention.choose.model import predict
from attention.choose.prediction import Unpredicted
from attention.problem import AttentionProblem
from attention.variant import Config, by_path
from microbench.results.doubt import doubt, doubts, told
from microbench.results.profile import Profile, read
from microbench.results.profile_constant import WIDE
from tests.cpu.attention_profiles import hopper_profile, host_profile
from tests.data.profiles import constant, shipped

OURS, TORCH = "host/forward/tiled_online_softmax", "host/forward/torch_sdpa"
LONG = AttentionProblem(1, 8, 8, 2048, 2048, 128)


def changed(profile: Profile, name: str, **fields: object) -> Profile:
    """`profile` with other fields in one constant."""
    assert name in profile
    constants = (c.model_copy(update=fields) if c.name == name else c for c in profile.constants)
    return profile.model_copy(update={"constants": tuple(constants)})


@pytest.mark.parametrize(
    ("low", "high", "wide"),
    [
        (1.0, 1.0, False),
        (0.7 / 74.6, 199.5 / 74.6, True),  # a host's matmul of 74.6 [0.7, 199.5] GFLOP/s
        (0.2, 1.05, False),  # one campaign of six was disturbed
        (0.97, 2.0, False),
        (1 / WIDE - 0.01, WIDE + 0.01, True),
        (0.0, 1.0, True),
        (-1.0, 1.0, True),
    ],
)
def test_an_interval_is_wide_where_not_even_half_of_the_campaigns_agree(low: float, high: float, wide: bool) -> None:
    assert constant("x", 1.0).model_copy(update={"low": low, "high": high}).wide is wide


@given(st.lists(st.floats(1.0, 1e6), min_size=1, max_size=6))
def test_half_of_the_campaigns_lie_within_the_factor_of_a_value_that_is_not_wide(values: list[float]) -> None:
    import numpy as np

    from microbench.results.curves import interval

    value, low, high = interval(np.array(values))
    if not constant("x", value).model_copy(update={"low": low, "high": high}).wide:
        near = [each for each in values if value / WIDE <= each * (1 + 1e-9) and each <= value * WIDE * (1 + 1e-9)]
        assert 2 * len(near) >= len(values)


@pytest.mark.parametrize(
    ("flag", "why"),
    [
        ("busy", "the machine was busy"),
        ("stolen", "the hypervisor gave its cores to others"),
        ("clock-moved", "its clock moved"),
    ],
)
def test_what_was_measured_beside_other_work_is_in_doubt_however_narrow(flag: str, why: str) -> None:
    found = doubt(constant("fma_f32_per_s", 1e9, flags=("8 fma zmm", flag)))
    assert str(found) == f"fma_f32_per_s: measured while {why}"
    assert doubt(constant("fma_f32_per_s", 1e9, flags=("8 fma zmm", f"{flag} in 3 of 296 rows"))) is None


def test_a_wide_interval_is_said_with_its_figures() -> None:
    matmul = constant("matmul_f32_flops_per_s", 74.6e9, unit="FLOP/s")
    wide = matmul.model_copy(update={"low": 0.7e9, "high": 199.5e9})
    said = "matmul_f32_flops_per_s: its interval 0.7 to 199.5 GFLOP/s is too wide for 74.6"
    assert str(doubt(wide)) == f"{said}: its campaigns disagree"
    assert str(doubt(wide.model_copy(update={"flags": ("busy",)}))) == f"{said}: the machine was busy"
    assert told(doubts(host_profile())) == []


def test_constants_of_one_cause_share_a_sentence() -> None:
    profile = changed(changed(host_profile(), "fma_f32_per_s", flags=("busy",)), "exp_f32_per_s", flags=("busy",))
    (said,) = told(doubts(profile))
    assert said == "In doubt: fma_f32_per_s, exp_f32_per_s: measured while the machine was busy."


def test_a_prediction_that_needs_a_constant_in_doubt_names_it_and_is_not_made() -> None:
    profile = changed(host_profile(), "fma_f32_per_s", low=0.7e9, high=2000e9)
    with pytest.raises(Unpredicted, match=r"fma_f32_per_s: its interval 1 to 2000 .* is too wide") as refused:
        predict(profile, LONG, by_path(OURS), Config((("block_q", 64), ("block_kv", 64))))
    assert refused.value.doubtful == "fma_f32_per_s"


def test_a_cache_whose_size_is_in_doubt_is_not_passed_over() -> None:
    profile = changed(host_profile(), "l1_size_bytes", flags=("stolen",))
    with pytest.raises(Unpredicted, match="l1_size_bytes: measured while the hypervisor"):
        predict(profile, LONG, by_path(OURS), Config((("block_q", 64), ("block_kv", 64))))


@pytest.mark.parametrize("name", ["matmul_f32_flops_per_s", "fma_f32_per_s", "dram_bandwidth_bytes_per_s"])
def test_no_constant_in_doubt_chooses_a_kernel(name: str) -> None:
    assert choose(host_profile(), LONG).pick.variant == OURS
    doubted = changed(host_profile(), name, flags=("busy",))
    assert choose(doubted, LONG).pick.variant == TORCH, "torch's kernel goes first where nothing can be compared"
    caution = f"no pick uses {name}: measured while the machine was busy"
    assert any(each.startswith(caution) for each in explain_on(doubted, LONG).cautions)
    assert choose(doubted, LONG, only="smscope").pick.variant == OURS


def test_a_doubt_about_one_of_torchs_kernels_leaves_the_others_in_the_race() -> None:
    problem = AttentionProblem(1, 16, 16, 4096, 4096, 128, dtype="bfloat16")
    doubted = changed(hopper_profile(), "mma_bf16_burst_flops_per_s", flags=("busy",))
    assert choose(doubted, problem).pick == choose(hopper_profile(), problem).pick


def test_a_flag_of_a_version_1_profile_meant_one_row_and_its_interval_judges(tmp_path: Path) -> None:
    flagged = changed(host_profile(), "fma_f32_per_s", flags=("8 fma zmm", "busy"))
    wide = changed(flagged, "matmul_f32_flops_per_s", low=0.7e9, high=2000e9, flags=("busy",))
    file = tmp_path / "host-test-4c.json"
    file.write_text(wide.model_dump_json().replace('"schema_version":2', '"schema_version":1'))
    found = read(file)
    assert found["fma_f32_per_s"].flags == ("8 fma zmm", "busy in some rows")
    assert [each.constant for each in doubts(found)] == ["matmul_f32_flops_per_s"]
    file.write_text(wide.model_dump_json())
    assert read(file) == wide and len(doubts(wide)) == 2


@pytest.mark.parametrize("gpu", ["h100-sxm-80gb", "host-amd-epyc-f26m2-2c"])
def test_no_constant_of_a_shipped_run_is_in_doubt(gpu: str) -> None:
    profile, _ = shipped(gpu)
    assert len(profile.constants) > 20 and doubts(profile) == ()
