"""Where a call on a GPU goes, by made-up plans: no tensor, no GPU."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from attention import FallbackWarning
from attention.choose.machine import MachineProfile, named_machine
from attention.forwarded import Wanted
from attention.frontends import route
from attention.op import plan

SHAPES = (torch.Size((1, 2, 8, 64)), torch.Size((1, 2, 12, 64)), torch.Size((1, 2, 12, 64)))


@pytest.fixture
def routed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Routes of a causal call: (owner, fallback, fused backwards by determinism) -> Route."""
    asked: list[bool] = []

    def call(
        *, owner: str = "torch", fallback: str | None = None, fused: dict[bool, bool], **options: bool
    ) -> route.Route:
        problem = SimpleNamespace(softmax_scale=1.0, causal=True, mask="none")
        plan = SimpleNamespace(
            problem=problem, owner=owner, fallback=fallback, lacks=fallback, forced=False, settles=False, run=None
        )
        monkeypatch.setattr(route, "plan_for", lambda *_: plan)

        def backward(_problem: Any, _device: Any, wanted: Wanted) -> Any:
            asked.append(wanted.deterministic)
            return SimpleNamespace(lacks=None if fused[wanted.deterministic] else "nothing has it")

        monkeypatch.setattr("attention.op.backward.route", backward)
        route._route.cache_clear()
        flags = {"bottom_right": False, "with_grad": False, "deterministic": False} | options
        cuda = torch.device("cuda", 0)
        return route._route(
            *((shape, torch.bfloat16, cuda) for shape in SHAPES),
            *(None, 0.0, True, flags["bottom_right"], None),
            *(False, "", flags["with_grad"], flags["deterministic"]),
        )

    yield call
    route._route.cache_clear()


FUSED = {False: True, True: True}
NONE = {False: False, True: False}


def test_lower_right_causality_becomes_a_mask_only_where_no_kernel_has_it(routed: Any) -> None:
    assert routed(fused=FUSED).to_torch and not routed(fused=FUSED, bottom_right=True).to_torch
    assert routed(fused=FUSED, bottom_right=True, fallback="nothing has it").to_torch
    assert not routed(fused=FUSED, bottom_right=True, with_grad=True).to_torch
    assert routed(fused=NONE, bottom_right=True, with_grad=True).to_torch


def test_deterministic_algorithms_decide_which_backward_there_is(routed: Any) -> None:
    only_fast = {False: True, True: False}
    assert not routed(owner="smscope", fused=only_fast, with_grad=True).to_torch
    assert routed(owner="smscope", fused=only_fast, with_grad=True, deterministic=True).to_torch
    assert not routed(owner="smscope", fused=only_fast).to_torch


UNTIMED = {kind: named_machine(kind).profile for kind in ("v100", "a100", "l4", "rtx-5090", "b200")}


@pytest.mark.parametrize("kind", UNTIMED)
def test_a_kind_of_gpu_without_timings_of_ours_goes_to_torchs_function_and_says_so_once(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "machine_profile", lambda _: MachineProfile(UNTIMED[kind]))
    for kept in (route._route, plan._pick_of):
        kept.cache_clear()
    cuda = torch.device("cuda", 0)
    found = route._route(
        *((shape, torch.float16, cuda) for shape in SHAPES),
        *(None, 0.0, True, False, None),
        *(False, "", False, False),
    )
    for kept in (route._route, plan._pick_of):
        kept.cache_clear()
    assert found.to_torch and found.lacks is not None and UNTIMED[kind].arch in found.lacks
    monkeypatch.setattr(plan, "_announced", set())
    with pytest.warns(FallbackWarning) as told:
        for _ in range(2):
            plan.warn_once(found.lacks)
    assert len(told) == 1 and str(told[0].message).endswith("; torch serves this call.")
