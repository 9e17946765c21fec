"""Value dims that no launch holds are two launches of half the columns each: what is launched, priced and told."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from attention.call import Manner, Options
from attention.choose import learned
from attention.choose.explain.explain import explain_on
from attention.choose.model import predict
from attention.errors import ProblemError
from attention.estimate import predicted as static
from attention.features import FEATURES
from attention.kernels.common.halves import half_of
from attention.kernels.common.layout import addresses
from attention.kernels.launch.forms import HEADS_FIRST, ROWS_OF_HEADS, Form
from attention.kernels.launch.frame import Described
from attention.kernels.launch.machine import Held, standing_in
from attention.op import operators as operator  # noqa: F401  registers them
from attention.op.launched import Launched, Trained, launched, server_of
from attention.op.plan import Plan
from attention.problem import AttentionProblem
from attention.variant import Config, Variant, by_path
from microbench.machine.arch import by_name
from microbench.results.profile import Profile
from tests.cpu.told_machine import StandIn

H200 = "h200-sxm-141gb"
WIDE = AttentionProblem(4, 8, 8, 4096, 4096, 64, 512, dtype="bfloat16", device="cuda")
HALF = replace(WIDE, head_dim_v=256)
HELD_TWICE = (
    "sm80/forward/software_pipelined",
    "sm80/forward/split_keys",
    "sm90a/forward/split_keys",
    "sm90a/forward/warp_specialised",
    "sm100a/forward/tensor_memory",
)
each_held_twice = pytest.mark.parametrize("path", HELD_TWICE)


@dataclass(frozen=True, eq=False)
class Halving(StandIn):
    """A machine that computes the columns of out that a launch of the sm80 forward is told of."""

    columns: int = 256
    told: list[tuple[int, int, int]] = field(default_factory=list)  # the first columns of V and out, and v_row

    def launch(self, frame: Described, held: Held, extras: Sequence[torch.Tensor | None]) -> None:
        query, key, value, out, *lse = held
        argument = frame.argument
        assert (argument.q, argument.k) == (query.data_ptr(), key.data_ptr())
        first, into = (argument.v - value.data_ptr()) // 2, (argument.out - out.data_ptr()) // 2
        self.told.append((first, into, argument.v_row))
        if query.shape[1] != argument.heads:
            query, key, value, out = (each.transpose(1, 2) for each in (query, key, value, out))
        scores = query.double() @ key.double().mT / 8
        out[..., into : into + self.columns] = scores.softmax(-1) @ value[..., first : first + self.columns].double()
        for each in lse:
            each.copy_(scores.logsumexp(-1))


def plan_of(value_dim: int = 512) -> Plan:
    problem = AttentionProblem(2, 3, 3, 16, 16, 64, value_dim, dtype="bfloat16", device="cuda")
    variant = by_path(HELD_TWICE[0])
    return Plan(problem, legal(variant, problem)[0], variant.load(), "smscope", None)


def legal(variant: Variant, problem: AttentionProblem) -> list[Config]:
    arch = by_name(variant.archs[0])
    assert variant.illegal is not None
    return [each for each in variant.configs() if variant.illegal(problem, each, arch) is None]


@contextmanager
def on(machine: Halving) -> Iterator[Halving]:
    with standing_in("cpu", machine):
        yield machine


def drawn(form: Form = HEADS_FIRST, value_dim: int = 512, grad: bool = False) -> list[torch.Tensor]:
    rng = torch.Generator().manual_seed(0)
    views = (torch.randn(2, 3, 16, width, generator=rng).bfloat16() for width in (64, 64, value_dim))
    return [form.to_kernel(each).contiguous().requires_grad_(grad) for each in views]


def expected(form: Form, *tensors: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    query, key, value = (form.to_kernel(each.detach()).double() for each in tensors)
    scores = query @ key.mT / 8
    return form.out((scores.softmax(-1) @ value).bfloat16()), scores.logsumexp(-1).float()


@pytest.mark.parametrize(
    ("value_dim", "half"),
    [(512, 256), (384, 192), (272, 144), (496, 256), (288, 144), (256, 256), (64, 64), (264, 264), (528, 528)],
)
def test_halves_are_a_multiple_of_16_wide_and_cover_all_columns(value_dim: int, half: int) -> None:
    assert half_of(replace(WIDE, head_dim_v=value_dim)) == replace(WIDE, head_dim_v=half)


@pytest.mark.parametrize("form", [HEADS_FIRST, ROWS_OF_HEADS])
@pytest.mark.parametrize(("value_dim", "columns", "second"), [(512, 256, 256), (272, 144, 128)])
def test_two_launches_read_and_write_columns_of_the_callers_rows(
    form: Form, value_dim: int, columns: int, second: int
) -> None:
    tensors, plan = drawn(form, value_dim), plan_of(value_dim)
    with on(Halving(columns=columns)) as machine:
        ready, where = launched(plan, *tensors, form), addresses(*tensors)
        assert ready is not None and where is not None and (ready.columns, ready.out.size[-1]) == (columns, value_dim)
        for _ in range(2):
            found = ready(*tensors, where)
            assert all(map(torch.equal, found, expected(form, *tensors)))
    row = value_dim if form is HEADS_FIRST else 3 * value_dim
    assert machine.told == [(0, 0, row), (second, second, row)] * 2 and len(machine.frames) == 1


def test_a_value_dim_that_is_held_is_one_launch() -> None:
    with on(Halving()) as machine:
        found, _ = plan_of(256).run(*(tensors := drawn(value_dim=256)), plan_of(256).problem, plan_of(256).config)
    assert len(machine.told) == 1 and torch.equal(found, expected(HEADS_FIRST, *tensors)[0])


def test_a_known_call_is_two_launches_and_allocates_no_lse_that_nobody_reads() -> None:
    plan, tensors = plan_of(), drawn()
    with on(Halving()) as machine:
        ready, where = launched(plan, *tensors), addresses(*tensors)
        assert ready is not None and where is not None
        serve = server_of(ready, Options(), Manner())
        assert isinstance(serve, Launched)
        assert torch.equal(serve(*tensors, where, []), expected(HEADS_FIRST, *tensors)[0])
    assert len(machine.told) == 2


def test_gradients_come_by_the_operators_as_of_any_value_dim() -> None:
    plan, tensors = plan_of(), drawn(grad=True)
    with on(Halving()):
        ready, where = launched(plan, *tensors), addresses(*tensors)
        assert ready is not None and where is not None
        serve = server_of(ready, Options(), Manner(), with_gradient=True)
        assert isinstance(serve, Trained)
        out = serve(*tensors, where, [])
        assert out is not None and torch.equal(out, expected(HEADS_FIRST, *tensors)[0])
    weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(1))
    found = torch.autograd.grad(out, tensors, weights.bfloat16())
    exact = [each.detach().double().requires_grad_() for each in tensors]
    right = (exact[0] @ exact[1].mT / 8).softmax(-1) @ exact[2]
    for got, wanted in zip(found, torch.autograd.grad(right, exact, weights.double()), strict=True):
        torch.testing.assert_close(got.double(), wanted, rtol=2e-2, atol=1e-1)


def test_the_operators_fake_lies_as_what_both_launches_write() -> None:
    for form in (HEADS_FIRST, ROWS_OF_HEADS):
        tensors = [form.to_kernel(each) for each in drawn(form)]
        with on(Halving()):
            ready = launched(plan_of(), *tensors)
        with FakeTensorMode() as mode:
            out, lse = torch.ops.smscope.attention_forward(*map(mode.from_tensor, tensors))
        assert ready is not None and (tuple(out.shape), out.stride()) == (ready.out.size, ready.out.strides)
        assert tuple(lse.shape) == ready.lse.size


@each_held_twice
def test_each_launch_is_that_of_its_half_with_any_feature(path: str) -> None:
    variant, arch = by_path(path), by_name(by_path(path).archs[0])
    few = {"seq_q": 64} if "split_keys" in path else {}
    asked: list[dict[str, Any]] = [{}, {"causal": True}, {"window": (64, 64)}, {"softcap": 30.0}, {"alibi": True}]
    asked += [{"sinks": True}, {"ranges": True}, {"mask": "bool"}, {"mask": "float"}, {"heads_kv": 2}]
    asked += [{"varlen": True, "tokens_q": 9000, "tokens_kv": 9000}]
    assert len(FEATURES) <= len(asked)
    for fields in asked:
        whole, half = (replace(each, batch=1, **few, **fields) for each in (WIDE, HALF))
        assert variant.refusal(whole, arch) == variant.refusal(half, arch)
        configs = legal(variant, whole)
        assert configs == legal(variant, half)
        for config in configs[:1]:
            assert variant.steps(whole, config) == variant.steps(half, config)
            assert variant.workspace(whole, config) == variant.workspace(half, config)


@each_held_twice
def test_what_two_launches_do_not_hold_is_refused_in_a_sentence(path: str) -> None:
    variant, arch = by_path(path), by_name(by_path(path).archs[0])
    whole = replace(WIDE, batch=1, seq_q=64)
    refused = "serves value dims unlike head dims where they are multiples of 16 up to 512, not {}"
    for value_dim in (260, 264, 520, 528, 1024):
        assert variant.refusal(replace(whole, head_dim_v=value_dim), arch) == refused.format(value_dim)
    assert variant.refusal(replace(whole, head_dim=512), arch) == "serves head dims up to 256, not 512"
    assert variant.refusal(replace(whole, dtype="float32"), arch) == "serves float16 and bfloat16, not float32"
    assert variant.refusal(replace(whole, dropout_p=0.1), arch) == "has no dropout"


@pytest.mark.parametrize("causal", [False, True])
def test_a_call_on_an_h200_is_ours_and_priced_as_both_launches(causal: bool) -> None:
    profile = Profile.load(H200)
    whole, half = (learned.choice_on(profile, replace(each, causal=causal)).pick for each in (WIDE, HALF))
    assert whole.owner == "smscope" and (whole.variant, whole.config) == (half.variant, half.config)
    one, both = half.prediction, whole.prediction
    assert one is not None and both is not None
    assert (both.seconds, both.unhidden_seconds) == (2 * one.seconds, 2 * one.unhidden_seconds)
    assert both.cycles == 2 * (one.cycles or 0) and both.bound_by == one.bound_by and both.efficiency == one.efficiency
    assert [each.seconds for each in both.terms] == [2 * each.seconds for each in one.terms]


def test_a_call_is_explained_as_two_launches() -> None:
    profile = Profile.load(H200)
    told = "value dim {} takes two launches, one after the other, each of {} columns of V and out: scores are computed "
    for value_dim, half in ((512, 256), (272, 144)):
        problem = replace(WIDE, head_dim_v=value_dim)
        notes = explain_on(profile, problem).notes
        assert told.format(value_dim, half) + "twice" in notes
    assert not any("two launches" in each for each in explain_on(profile, HALF).notes)


def test_a_prediction_without_cycles_has_none_of_two_launches_either() -> None:
    variant, profile = by_path(HELD_TWICE[3]), Profile.load(H200)
    found = predict(profile, WIDE, variant, legal(variant, WIDE)[0])
    assert replace(found, cycles=None).twice().cycles is None


def test_the_static_estimate_follows_one_launch() -> None:
    problem = replace(WIDE, dtype="float16")
    with pytest.raises(ProblemError, match="follows one launch, and value dim 512 takes two"):
        static.estimate_all(by_path(HELD_TWICE[0]), problem, static.rates_of(H200))
