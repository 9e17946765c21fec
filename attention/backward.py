"""The gradients of a call: by torch's fused kernels on our out and lse where they serve, else by the slow path.

The slow path (attention.gradient) serves every feature on every device, the gradient of lse, and double backward.
"""

import warnings
from dataclasses import dataclass
from functools import cache

import torch

from attention import gradient, torch_backward
from attention.errors import FallbackWarning
from attention.gradient import Gradients
from attention.problem import AttentionProblem
from attention.torch_backward import Backward, Forwarded, Route


@dataclass(frozen=True)
class Wanted:
    """Which gradients beside those of query, key and value, and how: `deterministic` adds in one order.

    `nothing_seen`: there are no queries or no keys, which a problem cannot say.
    """

    mask: bool
    alibi: bool
    sinks: bool
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
            wanted=(wanted.mask, wanted.alibi, wanted.sinks),
            nothing_seen=wanted.nothing_seen,
        )
    found = run(grad_out, given)
    inputs = (given.query, given.key, given.value)
    query, key, value = (_laid_out(each, like) for each, like in zip(found, inputs, strict=True))
    return Gradients(query, key, value, None, None, _of_sinks(grad_out, given) if wanted.sinks else None)


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
        if found.run is not None and wanted.mask:
            found = Route(None, "torch's fused backward kernels give no gradient of a mask")
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


def _of_sinks(grad_out: torch.Tensor, given: Forwarded) -> torch.Tensor:
    """-sum(exp(sink - lse) * rowsum(dO * out)): a sink takes weight from its row, and gives no value."""
    assert given.extras.sinks is not None
    wide = given.lse.dtype
    delta = (grad_out.to(wide) * given.out.to(wide)).sum(-1)
    shares = (given.extras.sinks[:, None] - given.lse).exp() * delta
    blind = given.lse == -torch.inf
    starts = given.extras.cu_seqlens_q
    if starts is not None:  # a row of no sequence has whatever its memory held
        row = torch.arange(given.lse.shape[2], device=given.lse.device)
        blind = blind | (row < starts[0]) | (row >= starts[-1])
    return -shares.masked_fill(blind, 0.0).sum((0, 2))
