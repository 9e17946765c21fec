"""Calls that bring tensors of features, found again: kernels are told what a judged call tells them. No GPU is here."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.nn.attention.bias import CausalBias, causal_lower_right, causal_upper_left

from attention import flash_attn_func, flash_attn_varlen_func, sdpa
from attention.frontends import kept
from attention.frontends import sdpa as frontend
from attention.frontends.flash_attn import functions
from attention.frontends.flash_attn import kept as kept_of_flash
from attention.kernels.launch.machine import standing_in
from attention.op import plan as plans
from attention.op.known import Known
from tests.cpu.attention_profiles import forget_choices
from tests.cpu.test_eager import Own
from tests.cpu.told_machine import Told, judge_as_on_a_gpu, pick_of

pytestmark = pytest.mark.usefixtures("host_machine")
PATHS = ("sm80/forward/software_pipelined", "sm90a/forward/warp_specialised")
OURS: dict[str, Any] = {"only": "smscope"}
B, H, S, D = 2, 3, 16, 64
STARTS = (0, 5, 5, 20)
Maybe = torch.Tensor | None


@pytest.fixture(params=PATHS)
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    """Front ends keep calls of CPU tensors, which this machine serves."""
    known, made = Known(of_cpu=True), Told()
    for module in (kept, frontend, kept_of_flash):
        monkeypatch.setattr(module, "KNOWN", known)
    monkeypatch.setattr(functions, "judge", judge_as_on_a_gpu)
    monkeypatch.setattr(plans, "_pick", pick_of(request.param))
    forget_choices()
    with standing_in("cpu", made):
        yield made
    forget_choices()


each_kind = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
Call = Callable[..., Any]


def judged_and_known(machine: Told, call: Call, first: list[Maybe], others: list[list[Maybe]]) -> None:
    """A call of `first` is kept; each of the others, of its kind, is served like that and as if it were judged."""
    known = kept.KNOWN
    known.forget()
    call(*first)
    (kind,) = known.calls
    for tensors in others:
        machine.callers.clear()
        machine.callers.update(each.data_ptr() for each in tensors if each is not None)
        machine.launches.clear()
        with pytest.MonkeyPatch.context() as patch:
            for module, name in ((frontend, "_judged"), (functions, "judge")):
                patch.setattr(module, name, lambda *_, **__: pytest.fail("a known call was judged"))
            found = call(*tensors)
        served = dict(known.calls)
        known.forget()
        wanted = call(*tensors)
        assert list(known.calls) == [kind]
        known.calls.update(served)
        assert machine.launches[0] == machine.launches[1]
        assert alike(found) == alike(wanted)


def alike(result: Any) -> list[Any]:
    results = result if isinstance(result, tuple) else (result,)
    return [(each.shape, each.stride(), each.dtype) for each in results]


def qkv(*shape: int) -> list[torch.Tensor]:
    return [torch.randn(shape).bfloat16() for _ in range(3)]


@dataclass(frozen=True)
class Lies:
    """How a tensor of a feature lies: `pad` elements behind each row, `begin` elements behind whole 16 bytes.

    Each of `step` elements is one of the tensor's.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    pad: int = 0
    begin: int = 0
    step: int = 1

    def drawn(self) -> torch.Tensor:
        *outer, row = self.shape
        sizes = (*outer, self.step * row + self.pad)
        flat = torch.randint(0, 5, (torch.Size(sizes).numel() + self.begin,)).to(self.dtype)
        return flat[self.begin :].view(sizes)[..., : self.step * row : self.step]


STEPS = st.sampled_from((1, 1, 2))


@st.composite
def masks(draw: st.DrawFn) -> Lies:
    whole = (B, H, S, S)
    shape = tuple(draw(st.sampled_from((size, 1))) for size in whole)[draw(st.integers(0, 2)) :]
    dtype = draw(st.sampled_from((torch.bool, torch.bfloat16, torch.float32)))
    return Lies(shape, dtype, draw(st.sampled_from((0, 1, 4, 16))), draw(st.sampled_from((0, 1, 2, 16))), draw(STEPS))


@given(mask=masks(), scale=st.sampled_from((None, 0.25)))
@each_kind
def test_a_mask(machine: Told, mask: Lies, scale: float | None) -> None:
    def call(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, given: torch.Tensor) -> torch.Tensor:
        return sdpa(query, key, value, given, scale=scale, **OURS)

    first, *others = [[*qkv(B, H, S, D), mask.drawn()] for _ in range(3)]
    judged_and_known(machine, call, first, [*others, first])


FLOATS = st.sampled_from((torch.float32, torch.bfloat16))
COUNTS = st.sampled_from((torch.int32, torch.int64))


@st.composite
def operands(draw: st.DrawFn, batch: int) -> list[Lies | None]:
    """alibi_slopes, sinks, seqused_q, seqused_k, leftpad_k."""
    slopes = st.builds(Lies, st.sampled_from(((H,), (batch, H))), FLOATS, st.sampled_from((0, 2)))
    sinks = st.builds(Lies, st.just((H,)), FLOATS, begin=st.sampled_from((0, 3)), step=STEPS)
    counts = st.builds(Lies, st.just((batch,)), COUNTS, begin=st.sampled_from((0, 1)), step=STEPS)
    return [draw(st.none() | each) for each in (slopes, sinks, counts, counts, counts)]


@given(beside=operands(B), causal=st.booleans(), lse=st.booleans(), sink=st.sampled_from(("sinks", "s_aux")))
@each_kind
def test_features_of_a_batch(machine: Told, beside: list[Lies | None], causal: bool, lse: bool, sink: str) -> None:
    names = ("alibi_slopes", sink, "seqused_q", "seqused_k", "leftpad_k")

    def call(*tensors: Maybe) -> Any:
        q, k, v, *given = tensors
        features: dict[str, Any] = dict(zip(names, given, strict=True))
        return flash_attn_func(q, k, v, causal=causal, return_lse=lse, num_splits=2, **features, **OURS)  # type: ignore[arg-type]

    drawn = [[*qkv(B, S, H, D), *(None if each is None else each.drawn() for each in beside)] for _ in range(3)]
    judged_and_known(machine, call, drawn[0], [*drawn[1:], drawn[0]])


@given(
    beside=operands(len(STARTS) - 1),
    starts=st.tuples(COUNTS, COUNTS),
    alike=st.booleans(),
    lse=st.booleans(),
    step=STEPS,
)
@each_kind
def test_packed_sequences(
    machine: Told, beside: list[Lies | None], starts: tuple[Any, Any], alike: bool, lse: bool, step: int
) -> None:
    def call(*tensors: Maybe) -> Any:
        q, k, v, of_q, of_k, slopes, sinks, used_q, used_k, left = tensors
        features: dict[str, Any] = {"alibi_slopes": slopes, "sinks": sinks}
        ranges: dict[str, Any] = {"seqused_q": used_q, "seqused_k": used_k, "leftpad_k": left}
        plain: dict[str, Any] = {"causal": True, "return_softmax_lse": lse} | OURS
        return flash_attn_varlen_func(q, k, v, of_q, of_k, 15, 15, **plain, **features, **ranges)  # type: ignore[arg-type]

    def drawn() -> list[Maybe]:
        of_q, of_k = (torch.tensor(STARTS, dtype=dtype).repeat_interleave(step)[::step] for dtype in starts)
        others = (None if each is None else each.drawn() for each in beside)
        return [*qkv(STARTS[-1], H, D), of_q, of_q if alike else of_k, *others]

    first, *others = [drawn() for _ in range(3)]
    judged_and_known(machine, call, first, [*others, first])


@pytest.mark.parametrize("queries", [4, S])
def test_causality_that_ends_at_the_last_key(machine: Told, queries: int) -> None:
    bias = causal_lower_right(queries, S)

    def call(*tensors: torch.Tensor) -> torch.Tensor:
        return sdpa(*tensors, attn_mask=bias, **OURS)  # type: ignore[misc]

    first, *others = [[torch.randn(B, H, queries, D).bfloat16(), *qkv(B, H, S, D)[1:]] for _ in range(3)]
    judged_and_known(machine, call, first, others)


def test_another_bias_is_another_kind(machine: Told) -> None:
    query, (_, key, value) = torch.randn(B, H, 4, D).bfloat16(), qkv(B, H, S, D)
    for bias in (causal_lower_right(4, S), causal_upper_left(4, S)):
        sdpa(query, key, value, bias, **OURS)
    sdpa(query, key, value, is_causal=True, **OURS)
    assert len(kept.KNOWN.calls) == 3
    alignments = [each["bottom_right"] for each in machine.launches if "bottom_right" in each]
    wrong: CausalBias = causal_lower_right(4, S + 1)
    with pytest.raises(ValueError, match="make it for these"):
        sdpa(query, key, value, wrong, **OURS)
    assert alignments in ([], [1, 0, 0])


def _kept(machine: Told) -> tuple[list[torch.Tensor], torch.Tensor]:
    inputs, sinks = qkv(B, S, H, D), torch.randn(H)
    flash_attn_func(*inputs, sinks=sinks, **OURS)
    assert len(kept.KNOWN.calls) == 1
    return inputs, sinks


OTHERS: dict[str, Callable[[], torch.Tensor]] = {
    "another shape": lambda: torch.ones(H + 1),
    "another dtype": lambda: torch.ones(H).half(),
    "other strides": lambda: torch.ones(2 * H)[::2],
    "elsewhere within 16 bytes": lambda: torch.ones(H + 1)[1:],
    "a subclass": lambda: torch.ones(H).as_subclass(Own),
    "negated by a bit": lambda: torch._neg_view(torch.ones(H)),
    "zeros without memory": lambda: torch._efficientzerotensor((H,)),
    "a functional wrapper": lambda: torch._to_functional_tensor(torch.ones(H)),
    "sparse": lambda: torch.ones(H).to_sparse(),
    "meta": lambda: torch.ones(H, device="meta"),
    "a gradient wanted": lambda: torch.ones(H, requires_grad=True),
    "no tensor": lambda: [1.0],  # type: ignore[dict-item, return-value]
    "nothing": lambda: None,  # type: ignore[dict-item, return-value]
}


@pytest.mark.parametrize("other", OTHERS)
def test_another_tensor_is_judged(machine: Told, other: str) -> None:
    inputs, sinks = _kept(machine)
    assert kept_of_flash.served(*inputs, sinks=sinks, **OURS) is not None
    assert kept_of_flash.served(*inputs, sinks=OTHERS[other](), **OURS) is None


def test_a_gradient_that_nobody_asks_for_is_none(machine: Told) -> None:
    inputs, sinks = _kept(machine)
    wanted = torch.nn.Parameter(sinks)
    assert kept_of_flash.served(*inputs, sinks=wanted, **OURS) is None
    with torch.no_grad():
        assert kept_of_flash.served(*inputs, sinks=wanted, **OURS) is not None


def test_with_gradients_features_are_judged(machine: Told) -> None:
    inputs = [each.requires_grad_() for each in qkv(B, S, H, D)]
    mask = torch.ones(S, S, dtype=torch.bool)
    flash_attn_func(*inputs, sinks=torch.randn(H), **OURS)
    flash_attn_func(*inputs, return_lse=True, **OURS)
    sdpa(*(each.transpose(1, 2) for each in inputs), attn_mask=mask, **OURS)  # type: ignore[misc]
    assert not kept.KNOWN.calls


def test_names_of_one_feature_exclude_each_other(machine: Told) -> None:
    inputs, sinks = _kept(machine)
    assert kept_of_flash.served(*inputs, s_aux=sinks, **OURS) is not None
    assert kept_of_flash.served(*inputs, s_aux=sinks, sinks=sinks, **OURS) is None


def test_what_a_longest_length_is_has_to_be_read(machine: Told) -> None:
    starts = torch.tensor(STARTS, dtype=torch.int32)
    for longest in (None, torch.tensor(15)):
        flash_attn_varlen_func(*qkv(STARTS[-1], H, D), starts, starts, longest, 15, **OURS)  # type: ignore[arg-type]
    assert not kept.KNOWN.calls


def test_launches_of_a_kind_follow_one_another_in_one_frame(machine: Told) -> None:
    inputs, _ = _kept(machine)
    before = len(machine.frames)
    for _ in range(3):
        flash_attn_func(*inputs, sinks=torch.randn(H), **OURS)
    assert len(machine.frames) == before + 1
