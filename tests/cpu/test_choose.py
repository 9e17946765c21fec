from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attention.choose.calibration import Duel
from attention.choose.candidates import TIE_BAND
from attention.choose.choose import Choice, choose
from attention.choose.corrections import Corrections
from attention.choose.prediction import Efficiency
from attention.errors import ProblemError, UnsupportedError
from attention.problem import AttentionProblem
from attention.variant import Variant, discover, shipped
from microbench.results.profile import Profile
from tests.cpu.attention_profiles import HOST, hopper_profile, host_profile
from tests.elsewhere import printed

LONG = AttentionProblem(1, 8, 8, 2048, 2048, 128)
OURS, TORCH = "host/forward/tiled_online_softmax", "host/forward/torch_sdpa"


def test_the_pick_is_the_fastest_prediction_or_ties_with_it():
    choice = choose(host_profile(), LONG)
    seconds = [each.prediction.seconds for each in choice.candidates if each.prediction]
    assert seconds == sorted(seconds)
    assert choice.pick in choice.tied and choice.pick.prediction.seconds <= seconds[0] * (1 + TIE_BAND)


def test_one_constant_moves_the_pick_from_our_kernel_to_torch():
    assert choose(host_profile(), LONG).pick.variant == OURS
    assert choose(host_profile(matmul_f32_flops_per_s=5e12), LONG).pick.variant == TORCH
    assert choose(host_profile(fma_f32_per_s=100e9), LONG).pick.variant == TORCH


def test_one_constant_moves_the_tile():
    base = choose(host_profile(), LONG, only="smscope").pick
    smaller_l1 = choose(host_profile(l1_size_bytes=32 * 1024, l2_bandwidth_bytes_per_s=60e9), LONG, only="smscope").pick
    assert smaller_l1.variant == base.variant == OURS and smaller_l1.config["block_kv"] < base.config["block_kv"]
    slow_l3 = host_profile(l3_bandwidth_bytes_per_s=4e9, dram_bandwidth_bytes_per_s=4e9)
    assert choose(slow_l3, LONG, only="smscope").pick.config["block_q"] > 64


@settings(max_examples=40, deadline=None)
@given(name=st.sampled_from(sorted(name for name in HOST if name.endswith("_per_s"))), factor=st.floats(0.999, 1.001))
def test_noise_far_below_the_tie_band_moves_no_pick(name, factor):
    picks = [choose(profile, LONG).pick for profile in (host_profile(), host_profile(**{name: HOST[name] * factor}))]
    assert (picks[0].variant, picks[0].config) == (picks[1].variant, picks[1].config)


def test_every_process_chooses_alike():
    script = (
        "from attention.choose.choose import choose; from attention.problem import AttentionProblem;"
        "from tests.cpu.attention_profiles import host_profile;"
        "print(choose(host_profile(), AttentionProblem(1, 8, 8, 2048, 2048, 128)).to_json())"
    )
    one, other = (printed(script, PYTHONHASHSEED=seed).strip() for seed in ("1", "2"))
    assert one == other == choose(host_profile(), LONG).to_json()


@given(
    seq_q=st.integers(1, 5000),
    seq_kv=st.integers(1, 5000),
    dim=st.integers(1, 300),
    causal=st.booleans(),
    dtype=st.sampled_from(["float16", "bfloat16", "float32", "float64"]),
)
@settings(max_examples=40, deadline=None)
def test_every_problem_gets_a_choice_that_survives_json(seq_q, seq_kv, dim, causal, dtype):
    choice = choose(host_profile(), AttentionProblem(1, 4, 2, seq_q, seq_kv, dim, dtype=dtype, causal=causal))
    assert Choice.from_json(choice.to_json()) == choice
    named = {each.variant for each in choice.candidates} | {each.variant for each in choice.refused}
    assert named == {variant.path for variant in shipped()}
    assert all(refusal.reason for refusal in choice.refused)


def test_only_leaves_the_others_out_and_says_so():
    choice = choose(host_profile(matmul_f32_flops_per_s=5e12), LONG, only="smscope")
    assert choice.pick.variant == OURS and choice.fallback is None
    assert any(each.variant == TORCH and "only='smscope'" in each.reason for each in choice.refused)
    assert choose(host_profile(), LONG, only="torch_math").pick.variant == "host/forward/torch_math"


def test_an_owner_that_does_not_exist_is_refused():
    with pytest.raises(ProblemError, match="smscope, torch, or one of"):
        choose(host_profile(), LONG, only="nobody")


@pytest.mark.parametrize(
    ("feature", "reason"), [({"mask": "bool"}, "mask"), ({"dropout_p": 0.5}, "dropout"), ({"head_dim": 300}, "256")]
)
def test_what_no_tuned_kernel_serves_falls_back_with_a_reason(feature, reason):
    problem = AttentionProblem(**({"head_dim": 64} | feature), batch=1, heads_q=2, heads_kv=2, seq_q=64, seq_kv=64)
    choice = choose(host_profile(), problem)
    assert choice.pick.owner == "torch" and reason in choice.fallback
    with pytest.raises(UnsupportedError, match=reason):
        choose(host_profile(), problem, only="smscope")


def test_timings_correct_the_ranking():
    classes = {f"{OURS} float32 many queries": Efficiency(0.2, 5), f"{TORCH} float32 many queries": Efficiency(0.9, 5)}
    assert choose(host_profile(), LONG, efficiencies=Corrections({}, {}, classes)).pick.variant == TORCH


def fought(*leads: float) -> tuple[Duel, ...]:
    """Duels near LONG with these leads of our kernel."""
    name = f"{OURS} float32 many queries"
    return tuple(Duel(name, replace(LONG, seq_q=1024 * index), lead) for index, lead in enumerate(leads, start=1))


def test_on_a_cpu_our_kernel_needs_to_have_won_near_the_problem():
    won = choose(host_profile(), LONG, duels=fought(1.5, 1.2, 1.1))
    assert won.pick.variant == OURS and won.mistrust is None
    lost = choose(host_profile(), LONG, duels=fought(1.5, 0.8, 1.1))
    assert lost.pick.variant == TORCH and "timed at 0.80 of the speed of torch's" in lost.mistrust
    assert choose(host_profile(), LONG, duels=fought(1.5, 1.01, 1.1)).pick.variant == TORCH
    for few in (fought(9.0, 9.0), ()):
        unknown = choose(host_profile(), LONG, duels=few)
        assert unknown.pick.variant == TORCH and "too few timings on this CPU" in unknown.mistrust
    assert choose(host_profile(), LONG, duels=(), only="smscope").pick.variant == OURS
    assert lost.mistrusted[0] == lost.candidates[0] and not won.mistrusted
    assert {each.variant for each in lost.mistrusted} == {OURS}


def test_what_torchs_function_cannot_do_needs_no_duel():
    window = AttentionProblem(1, 8, 8, 2048, 2048, 128, window=(64, 64))
    assert choose(host_profile(), window, duels=()).pick.variant == OURS


def test_a_tie_goes_to_what_was_timed():
    assert choose(host_profile(), LONG).pick.variant == OURS
    plain = choose(host_profile(), LONG)
    torchs = next(each for each in plain.candidates if each.variant == TORCH).prediction.seconds
    even = Efficiency(torchs / plain.pick.prediction.seconds, 5)
    choice = choose(host_profile(), LONG, efficiencies=Corrections({}, {}, {f"{TORCH} float32 many queries": even}))
    assert {each.variant for each in choice.tied} == {OURS, TORCH} and choice.pick.variant == TORCH
    assert choice.mistrust is None


def test_one_dtype_and_few_queries_learn_nothing_from_others():
    classes = {f"{OURS} float32 many queries": Efficiency(0.5, 5), f"{TORCH} float32 many queries": Efficiency(0.5, 5)}
    known = Corrections({}, {}, classes)
    for problem in (replace(LONG, dtype="bfloat16"), replace(LONG, seq_q=1)):
        found = choose(host_profile(), problem, efficiencies=known)
        assert all(each.prediction.efficiency.timings == 0 for each in found.candidates if each.prediction)


def test_without_measurements_torch_serves_and_the_reason_is_named():
    empty = Profile(gpu="host-unmeasured", name="unmeasured", arch="host", sm_count=2)
    choice = choose(empty, LONG)
    assert (
        choice.pick.variant == TORCH
        and choice.pick.prediction is None
        and "nothing of host-unmeasured was measured" in choice.pick.unpredicted
    )


def test_a_gpu_without_tuned_kernel_ranks_torchs_backends_and_refuses_the_rest_by_name():
    problem = AttentionProblem(1, 16, 16, 4096, 4096, 128, dtype="bfloat16")
    theirs = tuple(variant for variant in shipped() if variant.owner == "torch" or "sm90a" not in variant.archs)
    choice = choose(hopper_profile(), problem, variants=theirs)
    assert choice.pick.variant == "sm90a/forward/torch_cudnn" and "no tuned kernel for sm90a" in choice.fallback
    assert {each.variant for each in choice.candidates} >= {"sm80/forward/torch_flash", "sm70/forward/torch_math"}
    assert any(each.variant == OURS and "not on sm90a" in each.reason for each in choice.refused)
    slower = choose(hopper_profile(wgmma_n128_bf16_flops_per_clk_sm=1024), problem, variants=theirs)
    assert slower.pick.variant == "sm80/forward/torch_flash"


def test_a_variant_is_found_because_its_folder_is_there(tmp_path):
    folder = tmp_path / "host" / "forward" / "brand_new"
    folder.mkdir(parents=True)
    (folder / "variant.py").write_text(
        "from attention.tile import Demand, Tile\n"
        "from attention.variant import Variant\n"
        "def tile(problem, config):\n"
        "    rows = config['rows']\n"
        "    return Tile(rows, 64, rows, 64, (Demand('fma', 'one', rows * 64, 'fma_f32_per_s'),))\n"
        "VARIANT = Variant('new', 'smscope', ('host',), lambda p, a: None, tile=tile, space=(('rows', (8, 16)),),\n"
        "    illegal=lambda p, c, a: 'too many rows' if c['rows'] > 8 else None)\n"
    )
    found = discover(tmp_path)
    assert [variant.path for variant in found] == ["host/forward/brand_new"]
    choice = choose(host_profile(), LONG, variants=(*shipped(), *found))
    assert choice.pick.variant == "host/forward/brand_new" and choice.pick.config["rows"] == 8
    assert any(each.reason == "too many rows" and each.config["rows"] == 16 for each in choice.refused)


def test_a_folder_without_variant_is_named(tmp_path):
    folder = tmp_path / "host" / "forward" / "empty"
    folder.mkdir(parents=True)
    (folder / "variant.py").write_text("")
    with pytest.raises(Exception, match="binds no VARIANT"):
        discover(tmp_path)


def test_shipped_variants_are_frozen_and_load_only_when_asked():
    for variant in shipped():
        assert isinstance(variant, Variant) and variant.name == variant.path.rpartition("/")[2]
