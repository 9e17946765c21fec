"""Our kernels by published constants: ten kinds of GPU that nobody measured here, and what no source gives."""

import json
import subprocess
import sys
from dataclasses import replace
from functools import cache

import pytest
from rich.console import Console

from attention import cli
from attention.choose.choose import choose
from attention.choose.corrections import Corrections
from attention.choose.explain.explain import explain, explain_named, explain_on
from attention.choose.explain.explanation import Explanation
from attention.choose.explain.published import published_parts
from attention.choose.foreseen import judged
from attention.choose.machine import named_machine
from attention.choose.published.ranking import PublishedRanking, ranking
from attention.problem import AttentionProblem
from attention.variant import Config, shipped
from microbench.console.si import digits
from microbench.published import load
from microbench.results.profile import Profile
from tests.cpu.commands import called

SHAPE = "1,32,8,4096,4096,128"
FULL = AttentionProblem.parse_shape(SHAPE, dtype="float16", causal=False)
# What a kind's kernel is, and the constant for whose sake nothing is predicted.
KINDS = {
    "v100": ("sm70/forward/quad_pair", None),
    "a100": ("sm80/forward/software_pipelined", None),
    "l4": ("sm80/forward/software_pipelined", None),
    "l40s": ("sm80/forward/software_pipelined", None),
    "rtx-4090": ("sm80/forward/software_pipelined", None),
    "rtx-5090": ("sm80/forward/software_pipelined", "smem_latency_cycles"),
    "b200": ("sm100a/forward/tensor_memory", None),
    "gb200": ("sm100a/forward/tensor_memory", None),
    "b300": (
        "sm100a/forward/tensor_memory",
        "tcgen05_bf16_latency_cycles or l2_bandwidth_bytes_per_s",
    ),
}


@cache
def published(kind: str) -> Profile:
    profile = named_machine(kind).published
    assert profile is not None
    return profile


def ranked(profile: Profile, problem: AttentionProblem = FULL) -> PublishedRanking:
    torchs = tuple(each for each in explain(problem, gpu=profile.gpu).choice.candidates if each.owner == "torch")
    return ranking(profile, problem.on("cuda"), torchs)


def drawn(found: PublishedRanking) -> str:
    console = Console(width=200, color_system=None)
    with console.capture() as captured:
        for part in published_parts(found):
            console.print(part)
    return captured.get()


@pytest.mark.parametrize("kind", [*KINDS, "t4"])
def test_explain_says_what_ours_would_take(kind, capsys):
    code, out, err = called(capsys, cli.main, "explain", "--gpu", kind, "--shape", SHAPE)
    said = " ".join(out.split())
    assert code == 0 and not err and f"By published constants of {kind}" in said and "Beside torch: " in said
    variant, absent = KINDS.get(kind, (None, None))
    if variant is None:
        if not any(each.owner == "smscope" and "sm75" in each.archs for each in shipped()):
            assert "Ours: unpredicted, because smscope has no forward kernel for sm75 yet." in said
    elif absent is None:
        assert f"Ours: {variant} (" in said and ", bound by " in said and "published, " in said
    else:
        assert f"unpredicted, because no source gives {absent} of {kind}; its other terms take at least" in said


@pytest.mark.parametrize("kind", KINDS)
def test_every_legal_configuration_is_ranked_with_its_terms(kind):
    found = ranked(published(kind))
    seconds = [(each.unpriced, each.known.seconds) for each in found.candidates]
    assert {each.variant for each in found.candidates} == {KINDS[kind][0]} and seconds == sorted(seconds)
    assert len({each.config for each in found.candidates}) == len(found.candidates)
    first = found.candidates[0].known
    assert first.terms and first.efficiency.timings == 0
    assert {each.name for each in found.constants} == {name for term in first.terms for name in term.constants}
    assert all(each.label.startswith("published, ") for each in found.constants)


@pytest.mark.parametrize("kind", KINDS)
def test_without_any_one_constant_it_is_unpredicted_and_named_or_unchanged(kind):
    whole = published(kind)
    before = ranked(whole)
    asked = {
        each.config: {name for term in each.known.terms for name in term.constants} | {"sm_clock_mhz"}
        for each in before.candidates
    }
    for constant in whole.constants:
        others = tuple(each for each in whole.constants if each is not constant)
        found = ranked(whole.model_copy(update={"constants": others}))
        without = {each.config for each in found.candidates if constant.name in each.absent}
        assert without == {config for config, names in asked.items() if constant.name in names}
        assert all(each.prediction is None for each in found.candidates if each.config in without)
        assert all(constant.name in (each.unpredicted or "") for each in found.candidates if each.config in without)
        if not without:
            assert found == before
        elif len(without) == len(asked):  # the latency of a pair's products is asked of pairs alone
            assert found.beside_torch.ratio is None and constant.name in drawn(found)


def test_of_a_kind_without_a_clock_nothing_is_known_and_what_lacks_is_named(capsys):
    code, out, _ = called(capsys, cli.main, "explain", "--gpu", "gb300", "--shape", SHAPE)
    lacks = ("tcgen05_bf16_burst_flops_per_s", "l2_bandwidth_bytes_per_s", "dram_bandwidth_bytes_per_s", "sm_clock_mhz")
    said = " ".join(out.split())
    assert code == 0 and "unpredicted, because no source gives" in said
    assert all(name in said for name in lacks) and published("gb300").sm_count == 152
    assert all(each.known is None for each in ranked(published("gb300")).candidates)


@pytest.mark.parametrize("head_dim", [64, 128, 160, 256])
def test_voltas_tiles_that_differ_by_the_way_of_p_alone_do_not_tie(head_dim):
    every = ranked(published("v100"), replace(FULL, head_dim=head_dim, head_dim_v=head_dim)).candidates
    times = {each.config: judged(each) for each in every}
    pairs = [(times[shared], times[each]) for each in times if (shared := _by_shared_memory(each)) in times]
    assert pairs and all(shared[1] > registers[1] and shared[2] > registers[2] for shared, registers in pairs)


def _by_shared_memory(config):
    values = dict(config.values)
    return Config(tuple((values | {"p_in_registers": 0}).items())) if values["p_in_registers"] else None


def test_without_any_constant_nothing_is_known():
    found = ranked(published("a100").model_copy(update={"constants": ()}))
    assert all(each.known is None and len(each.absent) == 7 for each in found.candidates)
    assert found.constants == () and "sm_clock_mhz" in drawn(found)


def test_sources_that_disagree_by_too_much_predict_nothing():
    whole = published("v100")
    wide = {"value": 30.0, "low": 15.0, "high": 60.0}
    constants = tuple(
        each.model_copy(update=wide) if each.name == "smem_latency_cycles" else each for each in whole.constants
    )
    found = ranked(whole.model_copy(update={"constants": constants}))
    assert all(each.prediction is None and "too wide" in each.unpredicted for each in found.candidates)
    assert "Ours: sm70/forward/quad_pair" in drawn(found)


def test_the_ratio_to_torchs_is_the_same_where_only_ours_is_asked_for():
    found = [explain(FULL, gpu="a100", only=only).published for only in ("smscope", "torch", None)]
    assert found[0] == found[1] == found[2] and found[0].beside_torch.ratio


@pytest.mark.parametrize("kind", [*KINDS, "t4"])
def test_no_pick_rests_on_published_constants(kind):
    named = named_machine(kind)
    with_them, without = explain_named(named, FULL), explain_on(named.profile, FULL, caution=named.caution)
    assert with_them.choice == without.choice and with_them.choice.pick.owner == "torch"
    assert named.profile.constants == () and with_them.published is not None and without.published is None


def test_the_explanation_goes_to_json_and_back(capsys):
    code, out, _ = called(capsys, cli.main, "explain", "--gpu", "b200", "--shape", SHAPE, "--json")
    told = json.loads(out)["published"]
    assert code == 0 and told["kind"] == "b200" and told["candidates"][0]["prediction"]["terms"]
    found = explain(FULL, gpu="rtx-5090")
    assert Explanation.from_json(found.to_json()) == found


def test_it_needs_neither_a_gpu_nor_torch():
    program = "import sys; sys.modules['torch'] = None; from attention.cli import main; main(sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", program, "explain", "--gpu", "v100"], capture_output=True, text=True)
    assert done.returncode == 0 and "By published constants of v100" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("gpu", "causal", "figure"),
    [
        ("a100", False, "FlashAttention-2, fp16 full, D=128, 4096 tokens on A100 (variant n/s): 203 TFLOP/s (SAGE"),
        ("a100", True, "FlashAttention-2, fp16 causal, D=128, 4096 tokens on A100 (variant n/s): 181 TFLOP/s (SAGE"),
        ("rtx-4090", False, "FlashAttention-2, fp16 full, D=128, 4096 tokens on RTX 4090: 161 TFLOP/s (SAGE"),
        ("b200", True, "cudnn (PyTorch), bf16 causal, B=1 Hq=128 D=128, 4096 tokens on B200: 897 TFLOP/s (CUDNNFE"),
    ],
)
def test_the_ratio_to_torchs_names_the_figure_that_it_is_of(gpu, causal, figure):
    problem = AttentionProblem.parse_shape(SHAPE, dtype="float16", causal=causal)
    found = ranked(published(gpu), problem)
    beside = found.beside_torch
    assert figure in beside.why and beside.kernel.rpartition("/")[2] in ("torch_flash", "torch_cudnn")
    tflops = float(figure.partition(": ")[2].partition(" ")[0])
    ours = problem.flops / found.candidates[0].prediction.seconds / 1e12
    assert beside.ratio == pytest.approx(ours / tflops, rel=5e-3)
    assert f"bears out ours has at most {digits(beside.ratio)} of the speed of {beside.kernel}" in str(beside)


def test_timings_of_the_same_kernel_elsewhere_give_the_ratio_at_their_share_of_its_prediction():
    beside = ranked(published("a100")).beside_torch
    assert beside.timed_on in ("h100-sxm-80gb", "h200-sxm-141gb")
    assert beside.as_timed == pytest.approx(beside.ratio, rel=0.1) and beside.as_timed != beside.ratio
    assert ranked(published("b200"), replace(FULL, causal=True)).beside_torch.as_timed is None


def test_torchs_kernel_serves_where_the_slow_end_of_ours_does_not_beat_its_published_rate():
    found = ranked(published("b200"), replace(FULL, causal=True))
    beside, low = found.beside_torch, found.speed.band.low
    assert beside.ratio > 1 > beside.slow_end == beside.at_band == pytest.approx(low * beside.ratio)
    assert "The slow end does not beat torch's, so torch's kernel serves." in str(beside)
    faster = replace(beside, at_band=1.1)
    assert "torch's kernel serves all the same until ours has run on such a GPU" in str(faster)
    assert "No slow end is known, so torch's kernel serves." in str(replace(beside, at_band=None))


@pytest.mark.parametrize("gpu", ["a100", "rtx-4090"])
def test_the_slow_end_is_never_above_the_most(gpu):
    beside = replace(ranked(published(gpu)).beside_torch, at_band=None)
    assert beside.as_timed > beside.ratio == beside.slow_end
    assert f"and all of that if it does as on {beside.timed_on}, where it reached 1.02 of its pred" in str(beside)
    assert ("The slow end beats torch's" in str(beside)) == (beside.ratio > 1)
    slower = replace(beside, as_timed=0.9 * beside.ratio)
    assert slower.slow_end == slower.as_timed
    assert f", {digits(slower.as_timed)} if it reaches 0.900 of its prediction, as on" in str(slower)
    assert replace(beside, at_band=2 * beside.ratio).slow_end == beside.ratio


@pytest.mark.parametrize(
    ("gpu", "changes", "why"),
    [
        ("v100", {}, "no source gives the speed of sm70/forward/torch_efficient"),
        ("l4", {}, "no source gives the speed of sm80/forward/torch_flash"),
        ("a100", {"head_dim": 64, "head_dim_v": 64}, "near this problem"),
        ("a100", {"seq_q": 256, "seq_kv": 256}, "near this problem"),
        ("a100", {"seq_q": 1}, "near this problem"),
        ("a100", {"window": (256, 0), "alignment": "bottom_right"}, "near this problem"),
        ("a100", {"dtype": "float32"}, "no configuration of ours is legal"),
        ("rtx-5090", {}, "ours is unpredicted"),
    ],
)
def test_without_a_near_figure_the_ratio_is_unpredicted_and_says_why(gpu, changes, why):
    beside = ranked(published(gpu), replace(FULL, **changes)).beside_torch
    assert beside.ratio is None and why in beside.why and str(beside).startswith("Beside torch: unpredicted, because ")


def test_what_the_model_knows_of_torchs_kernels_stands_beside_ours():
    found = ranked(published("l4"))
    (flash,) = found.modelled
    assert flash.variant == "sm80/forward/torch_flash" and found.beside_torch.ratio is None
    assert "By the same constants, and its terms alone: sm80/forward/torch_flash" in " ".join(drawn(found).split())
    assert ranked(published("v100")).modelled == ranked(published("b200")).modelled == ()


@pytest.mark.parametrize(("kind", "asked"), [("v100", "v100-pcie"), ("a100", "A100 40"), ("b200", "b200-sxm")])
def test_a_board_of_a_kind_is_explained_by_its_kind(kind, asked):
    assert named_machine(asked).published == published(kind)


@pytest.mark.parametrize("asked", ["sm80", "rtx-3090", "h100-sxm-80gb", "a40"])
def test_what_is_of_no_kind_or_was_measured_has_no_published_profile(asked):
    assert named_machine(asked).published is None


@pytest.mark.parametrize("kind", [each.kind for each in load().kinds])
@pytest.mark.parametrize("causal", [False, True])
def test_a_kind_without_timings_of_ours_runs_torchs_kernel_and_says_why(kind, causal):
    empty = named_machine(kind).profile
    problem = AttentionProblem.parse_shape(SHAPE, dtype="float16", causal=causal).on("cuda")
    choice = choose(empty, problem, efficiencies=Corrections())
    assert choice.pick.owner == "torch" and choice.fallback
    assert empty.arch in choice.fallback
