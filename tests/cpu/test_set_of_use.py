"""The set of use: what a freeze's commit draws by the weights, and whose figures the problems have."""

from collections import Counter

import pytest

from attention.campaign import doors, rivals, set_use
from attention.campaign.draw import MOST_BYTES, MOST_FLOPS, bytes_of
from attention.campaign.set_use import COUNT, MODELS, USES, WEIGHTS, drawn
from attention.choose import candidates
from attention.compare.candidates import FLASH_4, MATH, Candidate
from attention.errors import UnsupportedError
from attention.problem import AttentionProblem
from attention.timed.timing import PEER
from attention.variant import by_path
from tests.cpu.scripted_campaign import H200

COMMITS = [f"{number * 7919:040x}" for number in range(8)]
DRAWN = drawn(COMMITS[1])
FIRST = ("prefill: Llama 3.2 1B", "B=8 Hq=32 Hkv=8 Sq=2176 Skv=2176 D=64 bfloat16 causal")


@pytest.mark.parametrize("commit", COMMITS)
def test_a_draw_has_two_hundred_problems_no_two_alike_and_none_too_large(commit: str) -> None:
    found = drawn(commit)
    assert len({str(each.posed) for each in found}) == len(found) == COUNT == 200
    assert all(each.posed.flops <= MOST_FLOPS and bytes_of(each.posed) <= MOST_BYTES for each in found)
    assert {each.use for each in found} == {*USES}


def test_a_draw_follows_from_the_commit_alone() -> None:
    assert drawn(COMMITS[1]) == DRAWN != drawn(COMMITS[2])
    # In any later tree and on any Python: a verdict is recomputed from it.
    first = drawn("0123456789abcdef0123456789abcdef01234567")[0]
    assert (str(first), str(first.posed)) == FIRST


def test_uses_come_as_often_as_they_weigh() -> None:
    assert sum(WEIGHTS.values()) == 100 and {*WEIGHTS} == {*USES} == {*MODELS}
    found = Counter(each.use for commit in COMMITS for each in drawn(commit))
    for use, weight in WEIGHTS.items():
        expected = weight / 100 * COUNT * len(COMMITS)
        assert abs(found[use] - expected) <= 4 * expected**0.5


def test_every_model_says_where_its_figures_stand_and_no_name_is_of_two() -> None:
    for models in MODELS.values():
        assert len({each.name for each in models}) == len(models)
        assert all(each.source and each.heads_q % each.heads_kv == 0 for each in models)


@pytest.mark.parametrize("use", USES)
def test_a_problem_has_its_models_heads_dealt_over_gpus_and_its_head_dim(use: set_use.Use) -> None:
    models = {each.name: each for each in MODELS[use]}
    for each in (one for commit in COMMITS for one in drawn(commit) if one.use == use):
        model, problem = models[each.model], each.posed.problem
        assert model.heads_q % problem.heads_q == 0
        assert model.heads_q * problem.heads_kv == problem.heads_q * model.heads_kv
        dims = [int(dim) for dim in model.head_dims.split("/")]
        assert (problem.head_dim, problem.head_dim_v) == (dims[0], dims[-1])
        assert model.queries or problem.seq_kv <= model.longest
        if model.queries:
            assert problem.seq_q in model.queries and problem.seq_kv in (model.keys or (problem.seq_q,))


def test_the_draws_hold_what_was_asked_for() -> None:
    every = [each for commit in COMMITS for each in drawn(commit)]
    assert {197, 257, 577, 1024} <= {each.posed.problem.seq_q for each in every if each.use == "vision"}
    assert {40, 64, 72, 80, 128, 160} <= {each.posed.problem.head_dim for each in every if each.use == "diffusion"}
    assert {77, 256, 333, 512} <= {each.posed.problem.seq_kv for each in every if each.use == "cross attention"}
    assert all(each.posed.problem.seq_q <= 16 for each in every if each.use == "decode")
    assert {each.posed.kind for each in every if each.use == "packed"} == {"packed"}
    features = {name for each in every for name in each.posed.features}
    assert features == {"window", "softcap", "mask", "sinks", "ranges", "packed"}


def test_a_problem_is_asked_of_every_configuration_of_every_peer_and_of_the_functions_that_take_it() -> None:
    peers = tuple(Candidate(name, "1", lambda *_: int) for name in (f"{PEER}torch_flash", f"{PEER}torch_cudnn"))
    jobs = rivals.jobs_of_use(DRAWN, H200, peers)
    assert [job.posed for job in jobs] == [each.posed for each in DRAWN]
    for job, used in zip(jobs, DRAWN, strict=True):
        problem, names = job.posed.problem, [each.name for each in job.doors]
        assert job.use == str(used) and job.peers[:-1] == peers and job.peers[-1].name == MATH
        plain = not problem.features or problem.features == ("bottom-right causality",)
        assert names == (
            [doors.SDPA] if problem.mask != "none" else [doors.SDPA, doors.FLASH] if plain else [doors.FLASH]
        )
        known = {*job.tiles}
        for variant, config in job.picked:
            assert variant.owner == "torch" or (variant, config) in known


def test_a_kernel_of_flash_attention_4_is_expected_to_be_compiled_once() -> None:
    jobs = rivals.jobs_of_use(DRAWN, H200, (Candidate(FLASH_4, "4", lambda *_: int),))
    classes = {key for job in jobs for key in rivals.flash_4_classes(job.posed.problem)}
    assert sum(job.jit_s for job in jobs) == pytest.approx(rivals.JIT_S * len(classes))
    # What it refuses would stand for a class that it does not: nothing would be compiled ahead.
    refused = [job for job in jobs if {"sinks", "mask"} & job.posed.features]
    assert refused and all(job.jit_s == 0 for job in refused)


def test_a_function_whose_first_calls_are_another_kernels_is_called_until_it_settles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(candidates, "DOUBT_OF_TORCH", -1.0)  # a kernel of torch's is picked wherever it seems faster
    every = [door for job in rivals.jobs_of_use(DRAWN, H200, ()) for door in job.doors]
    settling = [door for door in every if door.settles]
    assert {door.name for door in settling} == {doors.SDPA, doors.FLASH}
    assert all(door.pick is not None and by_path(door.pick.variant).first_seconds > 0 for door in settling)
    calls: list[int] = []
    for name in ("_sdpa", "_flash"):
        monkeypatch.setattr(doors, name, lambda problem, given: lambda: calls.append(1))
    for door in (next(door for door in settling if door.name == name) for name in (doors.SDPA, doors.FLASH)):
        calls.clear()
        door.prepare(DRAWN[0].posed.problem, None)  # type: ignore[arg-type]
        assert len(calls) > doors.CALLS_OF_A_SHAPE


def test_a_problem_that_nothing_serves_has_no_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(problem: AttentionProblem, profile: object) -> None:
        raise UnsupportedError("nothing does")

    monkeypatch.setattr(doors, "of", refuse)
    (job, *_) = rivals.jobs_of_use(DRAWN[:1], H200, ())
    assert job.doors == () == job.picked
