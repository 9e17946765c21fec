"""The set of floors timed beside peers: who is asked, what a line holds, and peers that fail in any way."""

import json
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from attention.call import Tensors
from attention.campaign import plan, rivals, rows, set_floors, timing
from attention.campaign.plan import Job
from attention.campaign.posed import parse
from attention.choose import learned
from attention.compare import candidates
from attention.compare.candidates import FLASH_4, Candidate
from attention.errors import UnsupportedError
from attention.kernels.torch.composed import slow
from attention.problem import AttentionProblem
from attention.variant import Config
from microbench.errors import DeviceError, InputError
from tests.cpu.campaign_rows import GPU, ONE
from tests.cpu.scripted_campaign import H200, Scripted, campaign, machine_of_campaigns  # noqa: F401  a fixture

TORCHS = ("peer/torch_flash", "peer/torch_cudnn", "peer/torch_efficient")
PROBLEMS = (
    parse("prefill 4 51 51 4096 4096 40 bf16"),
    parse("prefill 4 8 8 4096 4096 64/528 bf16"),
    parse("features 4 16 16 4096 4096 128 bf16 mask"),
)
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _nothing_but_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "_installed", lambda name: False)


def peer(name: str, prepare: Callable[[AttentionProblem, Tensors], Callable[[], Any]] = lambda *_: int) -> Candidate:
    return Candidate(f"peer/{name}", "1.0", prepare)


def test_the_set_asks_every_point_and_no_problem_twice() -> None:
    every = set_floors.problems()
    assert len({*map(str, every)}) == len(every) == len(set_floors.points()) <= 60
    assert {*set_floors.points().values()} == {*set_floors.POINTS}


def test_our_pick_stands_first_before_our_next_best_and_every_peer() -> None:
    first, masked = rivals.jobs(PROBLEMS, H200, rivals.every())
    assert first.posed == PROBLEMS[0] and masked.posed == PROBLEMS[2]  # nobody of ours has values of 528
    assert tuple(each.name for each in first.peers) == TORCHS
    for job in (first, masked):
        choice = learned.choice_on(H200, job.posed.problem, only="smscope")
        (variant, config) = job.tiles[0]
        assert (variant.path, config) == (choice.pick.variant, choice.pick.config) and job.picked == job.tiles[:1]
        assert len(job.tiles) == 1 + rivals.OTHERS and len({(each.path, values) for each, values in job.tiles}) == 3
        assert all(each.owner == "smscope" for each, _ in job.tiles) and len(job.sources) == 3


def test_a_call_of_few_queries_is_asked_as_its_class_is() -> None:
    posed = parse("short 8 16 16 77 4096 64 bf16")
    (job,) = rivals.jobs([posed], H200, ())
    (asked,) = rivals.jobs([parse("short 8 16 16 128 4096 64 bf16")], H200, ())
    assert job.tiles == asked.tiles and job.peers == ()


def test_flash_attention_4_is_expected_to_compile_each_class_once() -> None:
    posed = [parse(f"prefill {batch} 8 8 1024 1024 64 bf16 {word}") for batch in (1, 2) for word in ("", "causal")]
    found = rivals.jobs([*posed, PROBLEMS[2]], H200, (peer("flash_attn_4"),))
    assert [job.jit_s > 0 for job in found] == [True, True, False, False, False]
    assert found[0].estimate_s > found[2].estimate_s
    assert all(job.jit_s == 0 for job in rivals.jobs(posed, H200, (peer("torch_flash"),)))


def test_a_peer_is_left_out_by_its_name() -> None:
    assert [each.name for each in rivals.without(["peer/torch_cudnn"])] == [TORCHS[0], TORCHS[2]]
    assert len(rivals.without([FLASH_4])) == 3  # whether it is installed or not
    with pytest.raises(InputError, match="no peer 'flash'"):
        rivals.without(["flash"])


def test_versions_are_of_the_peers_that_were_asked() -> None:
    assert {*rivals.packages(rivals.every())} == {"torch", "cudnn"}
    assert rivals.packages([peer("flash_attn_4")])["flash_attn_4"] == "1.0"


def right(problem: AttentionProblem, given: Tensors) -> Callable[[], Any]:
    return lambda: slow.forward(given.query, given.key, given.value, problem, Config(), given.extras)[0]


def wrong(problem: AttentionProblem, given: Tensors) -> Callable[[], Any]:
    return lambda: torch.zeros_like(given.query)


def refuses(problem: AttentionProblem, given: Tensors) -> Callable[[], Any]:
    raise UnsupportedError("it has no such thing")


def fails(problem: AttentionProblem, given: Tensors) -> Callable[[], Any]:
    def call() -> None:
        warnings.warn("Flash attention kernel not used because: (Triggered internally at a.cpp:1.)", stacklevel=1)
        warnings.warn("It wants one head dim. (Triggered internally at a.cpp:2.)", stacklevel=1)
        warnings.warn("CuDNN attention has been runtime disabled.", stacklevel=1)
        raise RuntimeError("No available kernel.\nAborting execution.")

    return call


class Captured:
    """A call that a graph would hold."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.captured, self.replay = False, call


def prepared(*peers: Candidate) -> tuple[dict[str, Any], dict[str, Any]]:
    return timing.prepared(Job(parse("features 1 2 2 70 70 64 bf16 bias"), (), 1e-3, "sm90a", peers=peers), CPU)


def test_a_peer_is_checked_before_it_is_timed_and_may_fail_in_any_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "Graphed", Captured)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    every = (right, wrong, refuses, fails)
    found, calls = prepared(*(peer(each.__name__, each) for each in every))
    assert [*calls] == ["peer/right"] and [each.variant for each in found.values()] == [*found]
    good, bad, none, lost = found.values()
    assert good.failure is None and good.error is not None and not good.captured and good.is_peer and not good.picked
    assert (bad.failure or "").startswith("wrong: error") and none.failure == "it has no such thing"
    assert lost.failure == "No available kernel.; It wants one head dim."


def test_a_peer_that_takes_the_gpu_with_it_is_named_and_the_next_call_goes_on_without_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def lost() -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setenv("SMSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(timing, "Graphed", Captured)
    monkeypatch.setattr(torch.cuda, "synchronize", lost)
    with pytest.raises(DeviceError, match=r"^The GPU was lost by peer/fails: No available kernel"):
        prepared(peer("fails", fails))
    found, calls = prepared(peer("fails", fails), peer("right", right))
    assert [*calls] == ["peer/right"] and found["peer/fails"].failure == "it lost the GPU: No available kernel."


@pytest.fixture
def floors(gpu: Scripted, monkeypatch: pytest.MonkeyPatch) -> Scripted:
    """The machine, on three problems of floors, one of which none of ours serves."""
    monkeypatch.setattr(set_floors, "problems", lambda: PROBLEMS)
    gpu.peers_s = {"peer/torch_flash": 2e-3, "peer/torch_cudnn": 1e-3}
    return gpu


def lines(number: int = 1) -> Sequence[rows.ProblemTiming]:
    return rows.read(GPU, "floors", number)


def test_floors_are_timed_and_a_peer_that_refuses_is_no_failure(
    floors: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = campaign(capsys, "--set", "floors", "--json")
    told = json.loads(out)
    assert (code, told["timed"], told["left"], told["failed"], told["refused"]) == (0, 2, 0, 0, 2)
    assert told["file"].endswith("floors-1.jsonl") and {str(row.posed) for row in lines()} == {*map(str, PROBLEMS[::2])}
    for row in lines():
        assert row.seed.startswith("floors 1 ") and {*row.packages} == {"torch", "cudnn"}
        assert [tile.picked for tile in row.tiles] == [True, False, False, False, False, False]
        assert [tile.variant for tile in row.tiles[3:]] == [*TORCHS] and row.tiles[-1].failure == "it does not"
    assert rows.campaigns(GPU, "floors") == (1,) and rows.campaigns(GPU, "a") == ()


def test_a_peer_that_a_campaign_lacks_is_timed_in_the_next(
    floors: Scripted, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    floors.dies_after = 1
    campaign(capsys, "--set", "floors", "--without", "peer/torch_cudnn")
    floors.dies_after = None
    monkeypatch.setattr(candidates, "_installed", lambda name: name == candidates.FLASH_4_PACKAGE)
    monkeypatch.setattr(candidates.metadata, "version", lambda name: "4.0")
    assert json.loads(campaign(capsys, "--set", "floors", "--json")[1])["campaign"] == 1
    first, second = lines()
    assert [len(row.tiles) for row in (first, second)] == [5, 7] and second.packages["flash_attn_4"] == "4.0"
    assert json.loads(campaign(capsys, "--set", "floors", "--json")[1])["campaign"] == 2
    assert [len(row.tiles) for row in lines(2)] == [7, 7]


def test_a_plan_of_floors_compiles_what_is_timed_of_ours(
    floors: Scripted, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from microbench.results import derive

    derive.write(H200)
    monkeypatch.setattr(plan, "is_kept", lambda source: False)
    code, out, _ = campaign(capsys, "--set", "floors", "--ahead", "--gpu", GPU, "--json")
    told = json.loads(out)
    assert (code, told["problems"], told["configurations"], told["peers"]) == (0, 2, 6, sorted(TORCHS))
    assert floors.compiled == told["kernels_to_compile"] == 6 and floors.timed == []


def test_other_sets_have_no_peers() -> None:
    (job,) = plan.jobs([ONE], H200)
    assert job.peers == () and job.picked == () and job.jit_s == 0
