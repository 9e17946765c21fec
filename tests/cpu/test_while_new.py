"""A new shape goes to a kernel that builds no plan for it; one that is called often, to the fastest."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from attention.choose import while_new as rules
from attention.choose.candidates import Candidate
from attention.choose.choose import choose
from attention.choose.corrections import Corrections, Observation, corrections
from attention.choose.machine import MachineProfile
from attention.choose.prediction import Efficiency, Prediction
from attention.choose.while_new import CALLS_OF_A_SHAPE, HOST_SECONDS, Settling, Tally, stays, while_new
from attention.frontends import route
from attention.kernels.torch import flash
from attention.op import plan
from attention.problem import AttentionProblem
from attention.variant import Config, by_path
from tests.cpu.attention_profiles import forget_choices, hopper_profile

OURS, CUDNN, FLASH = "sm90a/forward/warp_specialised", "sm90a/forward/torch_cudnn", "sm80/forward/torch_flash"
SPLIT = "sm80/forward/split_keys"


def problem(queries: int, keys: int, batch: int = 1) -> AttentionProblem:
    return AttentionProblem(batch, 32, 8, queries, keys, 128, dtype="bfloat16", device="cuda")


def timed() -> Corrections:
    """Timings of every kernel by which cuDNN is the fastest for one query."""
    ratios = {OURS: 0.95, CUDNN: 0.9, FLASH: 0.6}
    found = [
        Observation(by_path(path), Config(), problem(queries, 4096), ratio)
        for path, ratio in ratios.items()
        for queries in (1, 4096)
    ]
    found += [
        Observation(by_path(path), config, problem(1, 16384, batch), 0.2)
        for path in (SPLIT, OURS)
        for config in by_path(path).configs()
        for batch in (1, 8)
    ]
    return corrections(found)


@pytest.mark.parametrize("batch", [1, 8])
def test_a_new_length_of_a_cache_waits_for_no_plan(batch: int) -> None:
    choice = choose(hopper_profile(), problem(1, 16384, batch), efficiencies=timed())
    assert choice.pick.variant == CUDNN and while_new(choice).variant == FLASH


def test_a_pick_without_a_plan_to_build_serves_from_the_first_call() -> None:
    choice = choose(hopper_profile(), problem(4096, 4096, 4), efficiencies=timed())
    assert while_new(choice) is choice.pick and choice.pick.variant == OURS


def test_a_kernel_of_ours_that_was_never_timed_does_not_come_in_by_this_door() -> None:
    only_torchs = corrections(Observation(by_path(path), Config(), problem(1, 4096), 0.9) for path in (CUDNN, FLASH))
    choice = choose(hopper_profile(), problem(16, 256, 64), efficiencies=only_torchs)
    assert choice.fallback and by_path(while_new(choice).variant).owner == "torch"


def test_a_plan_pays_after_many_calls() -> None:
    tally = Tally()
    assert [tally.settled() for _ in range(CALLS_OF_A_SHAPE)] == [False] * CALLS_OF_A_SHAPE and tally.settled()


def test_a_shape_that_is_called_often_changes_over_once() -> None:
    run = Settling(lambda *given: ("early", given), lambda *given: ("late", given))
    names = [run(1, 2)[0] for _ in range(CALLS_OF_A_SHAPE + 2)]
    assert names == ["early"] * CALLS_OF_A_SHAPE + ["late"] * 2 and run(1, 2)[1] == (1, 2)


def test_what_serves_graphs_alone_is_made_ready_outside_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    tally, capturing = Tally(graphs_alone=True), False
    monkeypatch.setattr(rules, "_is_capturing", lambda: capturing)
    first = [tally.settled() for _ in range(CALLS_OF_A_SHAPE + 3)]
    assert first == [False] * CALLS_OF_A_SHAPE + [True, False, False]
    capturing = True
    assert tally.settled()


@pytest.mark.parametrize(("by_ours", "by_cudnn", "stayed"), [(0.9, 0.8, True), (1.2, 1.1, False), (4.0, 3.0, False)])
def test_ours_goes_on_where_torchs_call_takes_the_host_longer(by_ours: float, by_cudnn: float, stayed: bool) -> None:
    found = {}
    for path, share in ((SPLIT, by_ours), (CUDNN, by_cudnn)):
        seconds = share * HOST_SECONDS["torch"]
        prediction = Prediction(seconds, "", (), None, Efficiency(1.0, 1), seconds)
        found[path] = Candidate(path, by_path(path).owner, Config(), prediction)
    choice: Any = SimpleNamespace(pick=found[CUDNN], tuning=None)
    assert stays(choice, found[SPLIT]) == stayed


@pytest.fixture
def on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Routes of one query on a made-up GPU, by these timings."""
    forget_choices()
    monkeypatch.setattr(plan, "machine_profile", lambda _device: MachineProfile(hopper_profile()))
    monkeypatch.setattr(plan.learned, "of_machine", lambda _profile: timed())

    def routed(keys: int, with_grad: bool = False) -> route.Route:
        query, key = torch.Size((1, 32, 1, 128)), torch.Size((1, 8, keys, 128))
        one, other = ((size, torch.bfloat16, torch.device("cuda", 0)) for size in (query, key))
        return route._route(one, other, other, None, 0.0, False, False, None, True, "", with_grad, False)

    yield routed
    forget_choices()


def test_each_length_counts_its_own_calls(on_a_gpu: Any) -> None:
    one, other = on_a_gpu(16_000), on_a_gpu(16_001)
    assert one.kernel is other.kernel is flash.alone
    assert one.tally is not None and other.tally is not None and one.tally is not other.tally
    assert on_a_gpu(16_000) is one


def test_the_operator_changes_over_too(on_a_gpu: Any) -> None:
    found = on_a_gpu(16_000).plan
    assert found is not None and found.settles and isinstance(found.run, Settling)
    assert (found.run.early, found.run.late) == (by_path(FLASH).load(), by_path(CUDNN).load())


def test_with_gradients_the_call_is_torchs_whole(on_a_gpu: Any) -> None:
    found = on_a_gpu(16_000, with_grad=True)
    assert found.to_torch and found.kernel is None and found.tally is None
