"""The gradients of a call: by torch's fused kernels on our out and lse where they serve, else by the slow path.

The slow path (attention.gradient) serves every feature on every device, the gradient of lse, and double backward.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import torch

from attention import gradient, torch_backward
from attention.call import TENSORS, Extras
from attention.errors import FallbackWarning
from attention.features import FEATURES, OPERANDS
from attention.gradient import Gradients
from attention.pieces import with_every_axis
from attention.problem import AttentionProblem
from attention.torch_backward import Backward, Forwarded, Route

LOGITS = frozenset(feature.operands[0].name for feature in FEATURES if feature.logit)


@dataclass(frozen=True)
class Wanted:
    """Of which operands of features gradients are wanted, and how: `deterministic` adds in one order.

    `nothing_seen`: there are no queries or no keys, which a problem cannot say.
    """

    operands: tuple[bool, ...]
    deterministic: bool = False
    nothing_seen: bool = False


_announced: set[str] = set()


def gradients(grad_out: torch.Tensor, grad_lse: torch.Tensor | None, given: Forwarded, wanted: Wanted) -> Gradients:
    """Gradients of every input, laid out as torch.empty_like of it. Warns once of each reason for the slow path."""
    run = _fused(grad_lse, given, wanted)
    if run is None:
        return gradient.backward(
            *(grad_out, grad_lse, given.query, given.key, given.value, given.out, given.lse),
            *(given.problem, given.extras),
            wanted=wanted.operands,
            nothing_seen=wanted.nothing_seen,
        )
    found = run(grad_out, given)
    inputs = (given.query, given.key, given.value)
    query, key, value = (_laid_out(each, like) for each, like in zip(found, inputs, strict=True))
    return Gradients(query, key, value, Extras(*_of_logits(grad_out, given, wanted)))


def route(problem: AttentionProblem, device: torch.device, deterministic: bool = False) -> Route:
    if device.type == "cpu":
        return torch_backward.route_on_cpu(problem)
    if device.type != "cuda":
        return Route(None, f"torch's fused backward kernels run on CUDA and CPUs, not on {device.type}")
    deterministic = deterministic or torch_backward.adds_in_one_order()
    return torch_backward.route(problem, _capability(device.index or 0), deterministic)


@cache
def _capability(index: int) -> tuple[int, int]:
    return torch.cuda.get_device_capability(index)


def _fused(grad_lse: torch.Tensor | None, given: Forwarded, wanted: Wanted) -> Backward | None:
    if wanted.nothing_seen:
        return None
    device = given.query.device
    if torch.is_grad_enabled() and given.query.requires_grad:
        return None  # create_graph: autograd follows torch operations, and not a fused kernel
    if grad_lse is not None:
        found = Route(None, "torch's fused backward kernels take no gradient of lse")
    else:
        found = route(given.problem, device, wanted.deterministic)
        others = [name for name, want in zip(TENSORS, wanted.operands, strict=False) if want and name not in LOGITS]
        if found.run is not None and others:
            found = Route(None, f"torch's fused backward kernels give no gradient of {others[0]}")
    if found.run is None and device.type == "cuda":
        _warn_once(found.reason)
    return found.run


def _warn_once(reason: str) -> None:
    if reason not in _announced:
        _announced.add(reason)
        warnings.warn(f"{reason}; these gradients take the slow path.", FallbackWarning, stacklevel=2)


def _laid_out(found: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A gradient in the layout that a compiled graph was promised; copied only where the kernel chose another one."""
    wanted = torch.empty_like(like)
    return found if found.stride() == wanted.stride() else wanted.copy_(found)


def _of_logits(grad_out: torch.Tensor, given: Forwarded, wanted: Wanted) -> Iterator[torch.Tensor | None]:
    """Of the logits without a value, which no fused kernel knows; None for other operands."""
    lse, starts = given.lse, given.extras.cu_seqlens_q
    for operand, tensor, want in zip(OPERANDS, given.extras, wanted.operands, strict=False):
        if tensor is None or not want or operand.name not in LOGITS:
            yield None
            continue
        delta = (grad_out.to(lse.dtype) * given.out.to(lse.dtype)).sum(-1)
        shares = gradient.logit_gradient(with_every_axis(operand, tensor)[..., 0], lse, delta)
        if starts is not None:  # a row of no sequence has whatever its memory held
            row = torch.arange(lse.shape[2], device=lse.device)
            shares = shares.masked_fill((row < starts[0]) | (row >= starts[-1]), 0.0)
        total = with_every_axis(operand, torch.zeros_like(tensor))
        yield shares[..., None].sum_to_size(total.shape).reshape(tensor.shape)
