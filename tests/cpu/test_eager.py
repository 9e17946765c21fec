"""Which calls may pass torch's dispatcher by, and that they give what the operator gives."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import attention
from attention.errors import ProblemError, UnsupportedError
from attention.op import dispatch
from attention.op.eager import needs_no_dispatch
from tests.elsewhere import printed


class Spied(TorchDispatchMode):
    """A mode that writes down the operators it meets."""

    def __init__(self) -> None:
        super().__init__()
        self.met: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.met.append(str(func))
        return func(*args, **(kwargs or {}))


class Functions(TorchFunctionMode):
    """A mode that stands in front of every function of torch."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class Own(torch.Tensor):
    """A subclass that adds nothing."""


def tensor(**options: Any) -> torch.Tensor:
    return torch.ones(1, 2, 8, 16, **options)


QUIET: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "nothing": nullcontext,
    "no_grad": torch.no_grad,
    "inference mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
}


@pytest.mark.parametrize("context", QUIET)
def test_plain_tensors_need_no_dispatcher(context: str) -> None:
    with QUIET[context]():
        assert needs_no_dispatch(tensor(), None, tensor().transpose(1, 2), torch.nn.Parameter(tensor(), False))


def test_a_parameter_needs_it_only_where_gradients_are_wanted() -> None:
    wanted = torch.nn.Parameter(tensor())
    assert not needs_no_dispatch(tensor(), wanted)
    with torch.no_grad():
        assert needs_no_dispatch(tensor(), wanted)


SPECIAL: dict[str, Callable[[], torch.Tensor]] = {
    "meta": lambda: tensor(device="meta"),
    "a subclass": lambda: tensor().as_subclass(Own),
    "negated by a bit": lambda: torch._neg_view(tensor()),
    "sparse": lambda: tensor().to_sparse(),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_tensors_need_it(name: str) -> None:
    assert not needs_no_dispatch(tensor(), SPECIAL[name]())


LOUD: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "a dispatch mode": Spied,
    "a function mode": Functions,
    "fake tensors": FakeTensorMode,
    "forward-mode AD": forward_ad.dual_level,
    "the profiler": lambda: torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]),
}


@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning")  # torch 2.11
@pytest.mark.parametrize("context", LOUD)
def test_modes_need_it(context: str) -> None:
    given = tensor()
    with LOUD[context]():
        assert not needs_no_dispatch(given)
    assert needs_no_dispatch(given)


def test_transforms_need_it() -> None:
    found: list[bool] = []

    def seen(x: torch.Tensor) -> torch.Tensor:
        found.append(needs_no_dispatch(x))
        return x * 2

    torch.func.vmap(seen)(tensor())
    torch.func.grad(lambda x: seen(x).sum())(tensor())
    torch.func.functionalize(seen)(tensor())
    assert found == [False] * 3


def test_a_mode_still_meets_the_operator() -> None:
    q = tensor()
    with Spied() as spied:
        attention.sdpa(q, q, q, only="smscope")
        attention.flash_attn_func(q, q, q, only="smscope")
    assert spied.met.count("smscope.attention_forward.default") == 2


@pytest.mark.parametrize("function", ["sdpa", "flash_attn_func"])
def test_a_default_device_keeps_the_way_past_the_dispatcher(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch.set_default_device is a mode of function overrides, which answers by calling the function without it."""
    asked: list[bool] = []
    monkeypatch.setattr(dispatch, "needs_no_dispatch", lambda *given: asked.append(needs_no_dispatch(*given)) or True)
    q = tensor()
    with torch.device("cpu"):
        getattr(attention, function)(q, q, q, only="smscope")
    assert asked == [True]


@pytest.mark.parametrize("causal", [False, True])
def test_past_the_dispatcher_the_result_is_the_same(causal: bool) -> None:
    q, k, v = (torch.randn(2, 4, 33, 64) for _ in range(3))
    direct = attention.sdpa(q, k, v, is_causal=causal, only="smscope")
    assert torch.equal(direct, torch.ops.smscope.attention_forward(q, k, v, causal=causal, only="smscope")[0])
    with torch.inference_mode():
        assert torch.equal(direct, attention.sdpa(q, k, v, is_causal=causal, only="smscope"))


def test_gradient_transforms_are_refused_in_one_sentence() -> None:
    q = tensor()
    with pytest.raises(UnsupportedError, match="not supported by attention"):
        torch.func.grad(lambda x: attention.sdpa(x, x, x, only="smscope").sum())(q)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_an_empty_call_is_judged_like_the_operator_judges_it(device: str) -> None:
    """Sizes of 0 are no problem that could be judged as a whole, and a dtype for each tensor is wrong all the same."""
    empty, keys = torch.zeros(1, 2, 0, 16, device=device), torch.zeros(1, 2, 8, 16, dtype=torch.float64, device=device)
    with pytest.raises(ProblemError, match="query, key and value are float32, float64, float64; cast them"):
        attention.sdpa(empty, keys, keys)


FIRST = """
import sys, torch
from attention import flash_attn_func, sdpa
q = torch.randn(1, 8, 128, 64)
expected = torch._C._nn.scaled_dot_product_attention(q, q, q)
assert torch.allclose(sdpa(q, q, q), expected, atol=1e-5)
assert "attention.op.operators" not in sys.modules
if sys.argv[1] == "compiled":
    found = torch.compile(lambda x: sdpa(x, x, x, only="smscope"), fullgraph=True, backend="aot_eager")(q)
elif sys.argv[1] == "vmap":
    found = torch.vmap(lambda x: sdpa(x, x, x, only="smscope"))(q[None])[0]
else:
    x = q.clone().requires_grad_()
    found = flash_attn_func(*[x.transpose(1, 2)] * 3).transpose(1, 2)
    found.sum().backward()
assert "attention.op.operators" in sys.modules and torch.allclose(found, expected, atol=1e-5)
"""


@pytest.mark.parametrize("who", ["compiled", "vmap", "gradients"])
def test_the_operators_are_registered_for_the_first_who_needs_torchs_dispatcher(who: str) -> None:
    """That takes as long as the rest of a first call, and most processes never need it."""
    printed(FIRST, who)
