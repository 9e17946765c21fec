"""Calls that are found again: what they must be like, and that they give what a judged call gives. No GPU is here."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from attention.call import Manner, Options
from attention.kernels.launch.forms import HEADS_FIRST, ROWS_OF_HEADS
from attention.kernels.launch.machine import stand_ins, standing_in
from attention.op import known as knowing
from attention.op.known import MOST_RECENT, Known, keepable
from attention.op.launched import Trained, launched, server_of
from attention.op.plan import Plan
from attention.problem import AttentionProblem
from attention.variant import by_path
from tests.cpu.test_eager import LOUD, Own
from tests.cpu.told_machine import Computing

pytestmark = [
    pytest.mark.usefixtures("host_machine"),
    pytest.mark.filterwarnings("ignore::attention.errors.FallbackWarning"),
    pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning"),
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning"),
]
SHAPE = (2, 3, 16, 64)
PATHS = ("sm80/forward/software_pipelined", "sm90a/forward/warp_specialised")
OPTIONS = (False, None, "smscope")


@pytest.fixture(params=PATHS)
def kept(request: pytest.FixtureRequest) -> Any:
    """(layout is turned, tensors) -> calls of which one is kept, of the tensors given."""
    variant, machine = by_path(request.param), Computing()
    problem = AttentionProblem(2, 3, 3, 16, 16, 64, dtype="bfloat16", device="cuda")
    plan = Plan(problem, variant.configs()[0], variant.load(), "smscope", None)

    def keep(*tensors: torch.Tensor, turned: bool = False) -> Known:
        known = Known(of_cpu=True)
        ready = launched(plan, *tensors, ROWS_OF_HEADS if turned else HEADS_FIRST)
        assert ready is not None and keepable(*tensors, OPTIONS)
        trains = torch.is_grad_enabled() and any(each.requires_grad for each in tensors)
        known.keep(*tensors, OPTIONS, server_of(ready, Options(), Manner(), trains))
        return known

    def head(tensors: list[torch.Tensor]) -> bytes:
        found: bytes = plan.run.head(machine, plan.run.shape_of(problem, plan.config), *tensors)  # type: ignore[attr-defined]
        return found

    with standing_in("cpu", machine):
        keep.machine, keep.head = machine, head  # type: ignore[attr-defined]
        yield keep


def drawn(shape: tuple[int, ...] = SHAPE, grad: bool = False) -> list[torch.Tensor]:
    rng = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=rng).bfloat16().requires_grad_(grad) for _ in range(3)]


def expected(*tensors: torch.Tensor) -> torch.Tensor:
    query, key, value = (each.double() for each in tensors)
    return ((query @ key.mT / 8).softmax(-1) @ value).bfloat16()


def test_a_kept_call_is_served(kept: Any) -> None:
    tensors = drawn()
    found = kept(*tensors).served(*tensors, OPTIONS)
    assert torch.equal(found, expected(*tensors)) and found.stride() == tensors[0].stride()


def test_rows_of_heads_come_back_as_such(kept: Any) -> None:
    tensors = drawn((2, 16, 3, 64))
    found = kept(*tensors, turned=True).served(*tensors, OPTIONS)
    assert torch.equal(found, expected(*(each.transpose(1, 2) for each in tensors)).transpose(1, 2))
    assert found.is_contiguous()


def test_launches_follow_one_another_in_one_frame(kept: Any) -> None:
    known = kept(*drawn())
    for _ in range(3):
        tensors = drawn()
        assert torch.equal(known.served(*tensors, OPTIONS), expected(*tensors))
    assert len(kept.machine.frames) == 1


def _misaligned() -> torch.Tensor:
    return torch.ones(2 * 3 * 16 * 64 + 1, dtype=torch.bfloat16)[1:].view(SHAPE)


OTHERS: dict[str, Callable[[], torch.Tensor]] = {
    "another shape": lambda: drawn((2, 3, 17, 64))[0],
    "other strides": lambda: drawn((2, 16, 3, 64))[0].transpose(1, 2),
    "another dtype": lambda: drawn()[0].half(),
    "a subclass": lambda: drawn()[0].as_subclass(Own),
    "negated by a bit": lambda: torch._neg_view(drawn()[0]),
    "zeros without memory": lambda: torch._efficientzerotensor(SHAPE, dtype=torch.bfloat16),
    "a functional wrapper": lambda: torch._to_functional_tensor(drawn()[0]),
    "sparse": lambda: drawn()[0].to_sparse(),
    "mkldnn": lambda: drawn()[0].to_mkldnn(),
    "meta": lambda: drawn()[0].to("meta"),
    "nested": lambda: torch.nested.nested_tensor(list(drawn()[0])),  # torch's guards would end the process
    "at an odd address": _misaligned,
    "a gradient wanted": lambda: drawn(grad=True)[0],
    "no tensor": lambda: [1.0],  # type: ignore[dict-item, return-value]
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_another_tensor_is_judged(kept: Any, other: str, at: int) -> None:
    tensors = drawn()
    known = kept(*tensors)
    tensors[at] = OTHERS[other]()
    assert known.served(*tensors, OPTIONS) is None


def looked_up(known: Known, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The calls that no question found, as they come."""
    found: list[Any] = []
    original = Known._looked_up
    monkeypatch.setattr(Known, "_looked_up", lambda *given: (found.append(given[1:]), original(*given))[1])
    return found


def test_a_recent_kind_is_found_by_one_question(kept: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    known = kept(*drawn())
    met = looked_up(known, monkeypatch)
    for context in (nullcontext, torch.no_grad, lambda: torch.device("cpu")):
        tensors = drawn()
        with context():
            assert torch.equal(known.served(*tensors, OPTIONS), expected(*tensors))
    assert not met


@pytest.mark.parametrize("other", ["inference mode", "parameters"])
def test_what_a_kind_does_not_tell_apart_is_asked_for_anew_once(
    kept: Any, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = kept(*drawn())
    met = looked_up(known, monkeypatch)
    for _ in range(3):
        for inner in (nullcontext(), torch.inference_mode(other == "inference mode")):
            with inner:
                tensors = drawn()
                if other == "parameters" and not isinstance(inner, nullcontext):
                    tensors[1] = torch.nn.Parameter(tensors[1], requires_grad=False)
                assert torch.equal(known.served(*tensors, OPTIONS), expected(*tensors))
    assert len(met) == 1


def test_one_tensor_given_twice_is_looked_up(kept: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    query, key, _ = drawn()
    known = kept(*drawn())
    met = looked_up(known, monkeypatch)
    for _ in range(2):
        assert torch.equal(known.served(query, key, key, OPTIONS), expected(query, key, key))
    assert len(met) == 2 and list(map(len, known.recent.values())) == [1]


def test_a_tensor_that_wants_a_gradient_is_never_served_without(kept: Any) -> None:
    """Kept and called without gradients, where it may want one: the next call does."""
    tensors = drawn(grad=True)
    with torch.no_grad():
        known = kept(*tensors)
        assert known.served(*tensors, OPTIONS) is not None
    assert known.served(*tensors, OPTIONS) is None


def test_few_kinds_are_recent_and_all_are_served(kept: Any) -> None:
    known = Known(of_cpu=True)
    every = [[query, *drawn()[1:]] for query in (drawn((2, 3, 16 + n, 64))[0] for n in range(MOST_RECENT + 2))]
    for n, tensors in enumerate(every):
        known.keep(*tensors, OPTIONS, lambda *_, n=n: n)
    for _ in range(2):
        assert [known.served(*tensors, OPTIONS) for tensors in every] == list(range(len(every)))
    assert list(map(len, known.recent.values())) == [MOST_RECENT]
    known.forget()
    assert [known.served(*tensors, OPTIONS) for tensors in every] == [None] * len(every)


def test_without_torchs_guards_calls_are_looked_up(kept: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knowing, "alike", lambda *_: None)
    known, tensors = kept(*drawn()), drawn()
    assert torch.equal(known.served(*tensors, OPTIONS), expected(*tensors)) and not known.recent


def test_a_frame_is_told_of_tensors_that_lie_elsewhere(kept: Any) -> None:
    one, other = drawn(), drawn()
    known, found = kept(*one), []
    for tensors in (one, one, other, one):
        known.served(*tensors, OPTIONS)
        (frame,) = kept.machine.frames
        found.append(bytes(frame.memory[: len(kept.head(one))]) == kept.head(tensors))
    assert found == [True] * 4


@pytest.mark.parametrize(
    "context", [*(LOUD[name] for name in LOUD), lambda: torch.autocast("cpu", torch.bfloat16)], ids=[*LOUD, "autocast"]
)
def test_what_is_on_meets_the_call(kept: Any, context: Callable[[], AbstractContextManager[Any]]) -> None:
    tensors = drawn()
    known = kept(*tensors)
    with context():
        assert known.served(*tensors, OPTIONS) is None
        assert not keepable(*tensors, OPTIONS)
    assert known.served(*tensors, OPTIONS) is not None


def test_transforms_meet_the_call(kept: Any) -> None:
    tensors = drawn()
    known, found = kept(*tensors), []
    torch.vmap(lambda each: (found.append(known.served(each, *tensors[1:], OPTIONS)), each)[1])(tensors[0][None])
    assert found == [None]


@pytest.mark.parametrize("context", [nullcontext, torch.no_grad, torch.inference_mode, lambda: torch.device("meta")])
def test_where_nothing_is_asked_of_torch_the_call_is_served(kept: Any, context: Any) -> None:
    """A default device among them, which concerns tensors that a function makes of nothing."""
    tensors = drawn()
    known = kept(*tensors)
    with context():
        assert torch.equal(known.served(*tensors, OPTIONS), expected(*tensors))


def test_other_options_and_another_machine_are_judged(kept: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = drawn()
    known = kept(*tensors)
    assert known.served(*tensors, (True, None, "smscope")) is None
    assert known.served(*tensors, ([], None, "smscope")) is None  # that have no hash
    monkeypatch.setitem(stand_ins, "cpu", Computing())
    assert known.served(*tensors, OPTIONS) is None


def test_a_tensor_among_the_options_is_never_kept() -> None:
    """It may hold another number in the next call."""
    assert keepable(*drawn(), (0.5, (-1, 3), None)) and not keepable(*drawn(), (torch.tensor(0.5),))
    assert not keepable(*drawn(), ((-1, torch.tensor(3)),))


@pytest.mark.parametrize("turned", [False, True])
def test_gradients_are_those_of_the_operator(kept: Any, turned: bool) -> None:
    tensors = drawn((2, 16, 3, 64) if turned else SHAPE, grad=True)
    found = kept(*tensors, turned=turned).served(*tensors, OPTIONS)
    weights = drawn(tuple(found.shape))[1]
    grads = torch.autograd.grad(found, tensors, weights)
    views = [each.transpose(1, 2) for each in tensors] if turned else tensors
    out = torch.ops.smscope.attention_forward(*views)[0]
    wanted = torch.autograd.grad(out.transpose(1, 2) if turned else out, tensors, weights)
    for grad, want in zip(grads, wanted, strict=True):
        torch.testing.assert_close(grad, want, rtol=0, atol=2e-2)


def test_second_derivatives_go_by_way_of_out_and_lse(kept: Any) -> None:
    tensors = drawn(grad=True)
    weights = drawn()[1]

    def second(out: torch.Tensor) -> tuple[torch.Tensor, ...]:
        first = torch.autograd.grad(out, tensors, weights, create_graph=True)
        return torch.autograd.grad([each.double().square().sum() for each in first], tensors)

    found = second(kept(*tensors).served(*tensors, OPTIONS))
    for grad, want in zip(found, second(torch.ops.smscope.attention_forward(*tensors)[0]), strict=True):
        torch.testing.assert_close(grad, want, rtol=2e-2, atol=2e-2)


def test_a_replay_may_save_what_the_operator_saved(kept: Any) -> None:
    """A checkpoint compares: a call that was judged before may be known when it is run again, and the other way."""
    tensors = drawn((2, 16, 3, 64), grad=True)
    known, met = kept(*tensors, turned=True), []

    def call(*given: torch.Tensor) -> torch.Tensor:
        met.append(known.served(*given, OPTIONS))
        out: torch.Tensor = torch.ops.smscope.attention_forward(*(each.transpose(1, 2) for each in given))[0]
        return out

    checkpoint(call, *tensors, use_reentrant=False).sum().backward()
    assert met == [None, None]


def test_who_serves_says_whether_autograd_is_told(kept: Any) -> None:
    (serve,) = (each.serve for each in kept(*drawn()).calls.values())
    (trained,) = (each.serve for each in kept(*drawn(grad=True)).calls.values())
    assert not isinstance(serve, Trained) and isinstance(trained, Trained)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("turned", [False, True])
def test_rows_that_are_no_whole_units_are_copied_in_and_out(path: str, turned: bool) -> None:
    variant = by_path(path)
    tensors = [each.transpose(1, 2) for each in drawn((2, 16, 3, 20))] if turned else drawn((2, 3, 16, 20))
    problem = AttentionProblem(2, 3, 3, 16, 16, 20, dtype="bfloat16", device="cuda")
    with standing_in("cpu", Computing()):
        assert variant.load().ready(*tensors, problem, variant.configs()[0]) is None
        out, lse = variant.load()(*tensors, problem, variant.configs()[0])
    assert torch.equal(out, expected(*tensors)) and out.stride() == tensors[0].stride() and lse.shape == (2, 3, 16)
