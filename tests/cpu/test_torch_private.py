"""What attention asks torch in private: each is there in this torch, and says what it is asked for."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import BaseTorchFunctionMode
from torch.profiler import ExecutionTraceObserver

from attention import torch_private
from tests.elsewhere import on_threads


def test_torchs_function_is_the_one_that_its_public_name_had() -> None:
    assert torch_private.torch_sdpa is torch.nn.functional.scaled_dot_product_attention


def test_no_device_but_the_cpu_is_initialised_here() -> None:
    assert torch_private.devices._initialized is False and torch.cuda._initialized is False


def test_every_backend_is_allowed_until_one_is_named() -> None:
    assert not torch_private.backends_are_restricted()
    assert set(torch_private.allowed_backends()) == set(SDPBackend.__members__) - {"ERROR"}
    for name in torch_private.allowed_backends():
        with sdpa_kernel(getattr(SDPBackend, name)):
            assert torch_private.backends_are_restricted() and torch_private.allowed_backends() == (name,)
    assert not torch_private.backends_are_restricted()


def test_a_flag_of_torch_backends_restricts_as_well() -> None:
    torch.backends.cuda.enable_math_sdp(False)
    try:
        assert torch_private.backends_are_restricted()
    finally:
        torch.backends.cuda.enable_math_sdp(True)


@pytest.fixture
def observer(tmp_path: Path) -> Iterator[ExecutionTraceObserver]:
    found = ExecutionTraceObserver().register_callback(str(tmp_path / "trace.json"))
    yield found
    found.unregister_callback()


def test_observers_are_seen_from_every_thread(observer: ExecutionTraceObserver) -> None:
    """As those of a Kineto daemon, whose callbacks are global: Python's own flag says nothing of either."""
    assert not torch_private.is_observed()
    observer.start()
    assert torch_private.is_observed() and on_threads(1, torch_private.is_observed) == [True]
    observer.stop()
    assert not torch_private.is_observed()


def test_guards_tell_what_tensors_are_like() -> None:
    def drawn(*shape: int) -> list[torch.Tensor]:
        return [torch.zeros(shape) for _ in range(3)]

    question = torch_private.alike(*drawn(2, 3))
    assert question is not None and question(*drawn(2, 3)) and not question(*drawn(3, 2))
    one, two, three = drawn(2, 3)
    for other in (
        one.double(),
        one.T.contiguous().T,
        one.to("meta"),
        one.clone().requires_grad_(),
        torch._neg_view(one),
    ):
        assert not question(one, other, three)
    assert not question(torch._neg_view(one), two, three)
    assert not question(one, one, three) and torch_private.alike(one, one, three) is None
    with torch.autocast("cpu", torch.bfloat16):
        assert not question(one, two, three)


def test_transforms_are_told_apart() -> None:
    found: list[bool] = []

    def look(x: torch.Tensor) -> torch.Tensor:
        found.append(torch_private.only_vmap_is_active())
        return x.sum()

    x = torch.ones(2, 3)
    vmap, grad = torch.vmap, torch.func.grad
    for call in (look, vmap(look), vmap(vmap(look)), grad(look), vmap(grad(look)), grad(lambda y: vmap(look)(y).sum())):
        call(x)
    assert found == [False, True, True, False, False, False]


def test_a_default_device_is_told_from_other_modes() -> None:
    found = torch_private.only_a_default_device
    assert not found()
    with torch.device("cpu"):
        assert found()
        with torch.device("meta"):
            assert not found()
    with BaseTorchFunctionMode():
        assert not found()


def test_hooks_of_saved_tensors_are_seen() -> None:
    assert not torch_private.saves_through_hooks()
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
        assert torch_private.saves_through_hooks()


def test_every_kind_of_autocast_is_seen() -> None:
    assert not torch_private.is_any_autocast()
    with torch.autocast("cpu", torch.bfloat16):
        assert torch_private.is_any_autocast()


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor):
        return tensor * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def test_a_function_is_applied_as_by_its_own_name() -> None:
    x = torch.ones(3, requires_grad=True)
    torch_private.apply_of(Doubled)(x).sum().backward()
    assert torch.equal(x.grad, torch.full((3,), 2.0))


def test_the_compilers_empty_tensor_is_there() -> None:
    assert torch_private.empty_on_current_gpu is torch._C._dynamo.guards._empty_strided_cuda
