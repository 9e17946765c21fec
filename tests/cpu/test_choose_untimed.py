"""Few queries go to kernels that split keys; a kernel never timed on this kind of GPU waits behind torch's."""

import warnings
from dataclasses import replace

import pytest

from attention.choose import learned
from attention.choose.choose import UNPROVEN, choose
from attention.choose.corrections import OWN_WORD, Corrections, Observation, corrections
from attention.choose.machine import published_for, takes_unmeasured
from attention.problem import AttentionProblem
from attention.variant import Config, by_path, shipped
from microbench import paths
from microbench.errors import DataWarning
from microbench.results.profile import Profile
from tests.cpu.attention_profiles import hopper_profile

OURS, CUDNN, FLASH = "sm90a/forward/warp_specialised", "sm90a/forward/torch_cudnn", "sm80/forward/torch_flash"
TIMED = "sm80/forward/software_pipelined"  # which an H100 timed as it is
UNPROVEN_OF = [
    (Profile(gpu="v100-test", name="V100", arch="sm70", sm_count=80), "sm70/forward/quad_pair"),
    (Profile(gpu="t4-test", name="T4", arch="sm75", sm_count=40), "sm75/forward/register_staged"),
]
BLACKWELL = [
    Profile(gpu=f"{name}-test", name=name, arch=arch, sm_count=148)
    for name, arch in (("b200", "sm100a"), ("b300", "sm103a"))
]
A100 = Profile(gpu="a100-test", name="A100", arch="sm80", sm_count=108)


SPLIT = "sm80/forward/split_keys"
BY_ROWS = ("sm80/forward/software_pipelined", "sm90a/forward/warp_specialised")


def problem(queries: int, keys: int, **changes: object) -> AttentionProblem:
    sizes = {"batch": 1, "heads_q": 32, "heads_kv": 8, "head_dim": 128} | changes
    return AttentionProblem(**sizes, seq_q=queries, seq_kv=keys, dtype="bfloat16", device="cuda")  # type: ignore[arg-type]


@pytest.mark.parametrize("batch", [1, 16, 64])
@pytest.mark.parametrize("keys", [4096, 8192, 32768, 131072])
def test_one_query_is_served_by_a_kernel_that_splits_keys(batch, keys):
    choice = choose(hopper_profile(), problem(1, keys, batch=batch))
    by_rows = [each for each in choice.candidates if each.variant in BY_ROWS and each.prediction]
    assert choice.pick.variant in (SPLIT, CUDNN, FLASH)
    assert choice.pick.prediction is not None
    assert min(each.prediction.seconds for each in by_rows) > 1.5 * choice.pick.prediction.seconds


def test_few_queries_of_one_sequence_are_dealt_to_many_blocks():
    # On an H100 eight parts of 16 queries' keys or fewer leave SMs idle.
    pick = choose(hopper_profile(), problem(16, 32768)).pick
    assert pick.variant == SPLIT and pick.config["key_splits"] >= 8


def test_a_prompt_gains_nothing_from_that():
    choice = choose(hopper_profile(), problem(4096, 4096, batch=4))
    ours = min(each.prediction.seconds for each in choice.candidates if each.owner == "smscope" and each.prediction)
    assert choice.pick.prediction is not None and ours < 1.1 * choice.pick.prediction.seconds


def observed(*paths: str) -> Corrections:
    """Of the times predicted, ours took the model's, and torch's a quarter more."""
    prompt = problem(4096, 4096)
    return corrections(Observation(by_path(path), Config(), prompt, 1.0 if path == OURS else 0.8) for path in paths)


@pytest.mark.parametrize("timed", [(), (OURS,), (CUDNN,)])
def test_a_kernel_that_was_not_timed_beside_torchs_waits_behind_it(timed):
    choice = choose(hopper_profile(), problem(4096, 4096), efficiencies=observed(*timed))
    assert choice.pick.owner == "torch" and choice.fallback is not None and "SMSCOPE_UNMEASURED=1" in choice.fallback


def test_timings_of_both_let_it_take_part():
    choice = choose(hopper_profile(), problem(4096, 4096, batch=4), efficiencies=observed(OURS, CUDNN))
    assert (choice.pick.variant, choice.fallback) == (OURS, None)


def test_a_gpu_without_profile_takes_torchs_and_says_why():
    choice = choose(A100, problem(4096, 4096), efficiencies=Corrections())
    assert choice.pick.variant == FLASH and choice.fallback is not None and "sm80" in choice.fallback
    assert choose(A100, problem(4096, 4096), efficiencies=Corrections(), unmeasured=True).pick.owner == "smscope"
    assert choose(A100, problem(4096, 4096), only="smscope", efficiencies=Corrections()).pick.owner == "smscope"


@pytest.mark.parametrize("gpu", BLACKWELL, ids=lambda gpu: gpu.arch)
def test_blackwell_runs_torchs_kernels_until_ours_are_timed(gpu):
    choice = choose(gpu, problem(4096, 4096), efficiencies=Corrections())
    assert choice.pick.owner == "torch" and choice.fallback is not None and gpu.arch in choice.fallback
    (ours,) = {each.variant for each in choice.refused if each.reason == UNPROVEN}
    assert ours == "sm100a/forward/tensor_memory"
    assert choose(gpu, problem(4096, 4096), efficiencies=Corrections(), unmeasured=True).pick.variant == ours


def test_what_torch_has_only_a_slow_path_for_is_ours_all_the_same():
    assert choose(A100, problem(4096, 4096, softcap=30.0), efficiencies=Corrections()).pick.owner == "smscope"


@pytest.mark.parametrize("changes", [{}, {"softcap": 30.0}, {"head_dim": 256}, {"alibi": True, "varlen": True}])
@pytest.mark.parametrize(("gpu", "ours"), UNPROVEN_OF, ids=lambda value: getattr(value, "arch", ""))
def test_a_kernel_that_no_gpu_has_run_changes_no_pick(gpu, ours, changes):
    asked = replace(problem(4096, 4096, **changes), dtype="float16")
    without = tuple(each for each in shipped() if each.path != ours)
    choice, before = (choose(gpu, asked, variants=v, efficiencies=Corrections()) for v in (shipped(), without))
    assert (choice.pick, choice.nearest) == (before.pick, before.nearest)
    assert choice.fallback == f"there is no tuned kernel for {gpu.arch} that a GPU has run: {ours} {UNPROVEN}"
    assert choice.pick.owner == "torch" and any("UNMEASURED=1" in each.reason for each in choice.refused)
    for wanted in ({"unmeasured": True}, {"only": "smscope"}):
        assert choose(gpu, asked, efficiencies=Corrections(), **wanted).pick.variant == ours


def test_timings_of_another_gpu_of_the_architecture_count():
    bare = Profile.load("h100-sxm-80gb").model_copy(update={"gpu": "h100-pcie-80gb", "sm_count": 114})
    assert learned.of_machine(bare).timed(by_path(TIMED)) and not learned.of_machine(A100)


def test_other_gpus_are_looked_for_anew_where_the_data_lie_elsewhere(monkeypatch, tmp_path):
    bare = Profile.load("h100-sxm-80gb").model_copy(update={"gpu": "h100-pcie-80gb", "sm_count": 114})
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(paths, "data_roots", lambda: [tmp_path])
        assert not learned.of_machine(bare)
    assert learned.of_machine(bare).timed(by_path(TIMED))


def test_few_queries_are_corrected_by_few_queries():
    ours, config = by_path(OURS), Config()
    alone = [(problem(1, 8192), 0.5), (problem(16, 8192), 0.3), (problem(4096, 8192), 0.8)]
    found = corrections(Observation(ours, config, each, ratio) for each, ratio in alone)
    for each, ratio in alone:
        nearest = found.nearest(ours, config, each)
        # A timing at hand beside the model's own word, which is a share of one.
        assert (
            nearest is not None
            and nearest.near
            and nearest.value == pytest.approx(ratio ** (1 / (1 + OWN_WORD)), rel=1e-5)
        )


def test_a_correction_of_ours_lies_between_its_timings_and_nearer_to_the_nearest():
    ours, config = by_path(OURS), Config()
    seen = [(problem(1, 8192), 0.5), (problem(1, 65536), 0.9)]
    found = corrections(Observation(ours, config, each, ratio) for each, ratio in seen)
    short, long = (found.nearest(ours, config, each) for each, _ in seen)
    batch = found.nearest(ours, config, problem(1, 65536, batch=8))
    assert short is not None and long is not None and batch is not None
    assert 0.5 < short.value < long.value < batch.value < 1.0  # as far from both, beside the model's own word


def test_what_was_never_timed_of_ours_is_not_corrected_by_another_kind():
    ours, config = by_path(OURS), Config()
    found = corrections([Observation(ours, config, problem(4096, 8192), 0.5)])
    assert found.timed(ours) and found.nearest(ours, config, problem(1, 8192)) is None


def test_where_ours_is_asked_for_published_constants_order_its_tiles():
    decode = replace(problem(1, 100_000), dtype="float16")
    v100 = UNPROVEN_OF[0][0].model_copy(update={"gpu": "v100-sxm2-16gb"})
    wanted = {"only": "smscope", "efficiencies": Corrections()}
    first, best = (choose(v100, decode, published=each, **wanted).pick for each in (None, published_for(v100)))
    assert first.config["key_splits"] == 1 < best.config["key_splits"]
    assert learned.choice_on(v100, decode, only="smscope").pick == best
    assert published_for(hopper_profile()) is None


def test_what_a_kernel_cannot_serve_is_said_before_that_it_was_never_run():
    volta, ours = UNPROVEN_OF[0]
    choice = choose(volta, problem(4096, 4096), efficiencies=Corrections())
    assert choice.fallback is not None and ours in choice.fallback and "bfloat16" in choice.fallback
    assert "SMSCOPE_UNMEASURED" not in choice.fallback


def test_a_word_for_neither_is_said_once_and_counts_as_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMSCOPE_UNMEASURED", "2, please")
    with pytest.warns(DataWarning, match="SMSCOPE_UNMEASURED=2, please is neither 1 nor 0, and counts as 0"):
        assert not takes_unmeasured()
    with warnings.catch_warnings(action="error"):
        assert not takes_unmeasured()
