"""The gradients of a call: by the backward kernel that is chosen for its problem, on our out and lse.

The slow path serves every feature on every device, the gradient of lse, and double backward.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import torch

from attention.choose import learned
from attention.choose.candidates import Refusal, withheld_from
from attention.choose.machine import machine_profile
from attention.errors import FallbackWarning
from attention.forwarded import Forwarded, Gradients, Wanted
from attention.problem import AttentionProblem
from attention.variant import by_path

Run = Callable[[torch.Tensor, torch.Tensor | None, Forwarded, Wanted], Gradients]
_announced: set[str] = set()


@dataclass(frozen=True)
class Route:
    """The backward of a problem. `lacks` says why no fused kernel serves, in a sentence without a full stop."""

    variant: str
    run: Run
    lacks: str | None


def gradients(grad_out: torch.Tensor, grad_lse: torch.Tensor | None, given: Forwarded, wanted: Wanted) -> Gradients:
    """Gradients of every input, laid out as torch.empty_like of it. Warns once of each reason for the slow path."""
    device = given.query.device
    found = route(given.problem, device, wanted)
    if found.lacks is not None and device.type == "cuda" and not (wanted.twice or wanted.nothing_seen):
        _warn_once(found.lacks)
    return found.run(grad_out, grad_lse, given, wanted)


def route(problem: AttentionProblem, device: torch.device, wanted: Wanted) -> Route:
    """Which backward serves a problem and a call, by what this process may use now."""
    arch = machine_profile(_name(device)).profile.arch
    return _chosen(problem, device, withheld_from(wanted, "backward", arch))


def _name(device: torch.device) -> str:
    return str(device) if device.type == "cuda" else "cpu"


@lru_cache(maxsize=4096)
def _chosen(problem: AttentionProblem, device: torch.device, withheld: tuple[Refusal, ...]) -> Route:
    """Of the problem itself, and not of its class: some lengths are known to go wrong."""
    profile = machine_profile(_name(device)).profile
    choice = learned.choice_on(profile, problem, passes="backward", withheld=withheld)
    return Route(choice.pick.variant, by_path(choice.pick.variant).load(), choice.fallback)


def _warn_once(reason: str) -> None:
    if reason not in _announced:
        _announced.add(reason)
        warnings.warn(f"{reason}; these gradients take the slow path.", FallbackWarning, stacklevel=2)
