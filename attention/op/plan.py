"""From what the operator is called with to a kernel made ready: chosen once, then looked up.

Nothing of a plan depends on addresses or values: whatever has the same shapes, dtype and device has the same plan.
"""

import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch

from attention.call import NO_EXTRAS, Extras, Options
from attention.choose import learned
from attention.choose.classes import representative
from attention.choose.evidence import never_won
from attention.choose.machine import machine_profile
from attention.choose.while_new import Settling, stays, while_new
from attention.errors import FallbackWarning, UnsupportedError
from attention.judge.call import Judged, judged
from attention.judge.shapes import Facts, Layout
from attention.kernels.torch.composed import slow
from attention.problem import AttentionProblem
from attention.variant import Config, Owner, by_path

Given = tuple[torch.Size, torch.dtype, torch.device]
Run = Callable[..., tuple[torch.Tensor, torch.Tensor]]
SERVED_DEVICES = ("cpu", "cuda", "meta")
_announced: set[str] = set()
_OURS_AND_TORCHS = tuple(f"{folder}{os.sep}" for folder in (Path(__file__).parents[1], Path(torch.__file__).parent))
FLASH = "sm80/forward/torch_flash"
CUDNN_FIRST = ("sm90a", "sm100a", "sm103a")  # where torch's function prefers cuDNN (sdp_utils, torch 2.11)


@dataclass(frozen=True)
class Plan:
    """A choice made ready to run. `fallback` says why no tuned kernel serves.

    `forced`: the pick is torch's FlashAttention-2, where torch's function would take cuDNN.
    `settles`: it serves shapes that are new, and another kernel of torch's those that are called often, or their
    graphs; `run` changes over by itself (choose.while_new).
    """

    problem: AttentionProblem
    config: Config
    run: Run
    owner: Owner
    fallback: str | None
    nearest: str | None = None
    forced: bool = False
    settles: bool = False

    @property
    def lacks(self) -> str | None:
        """Why no tuned kernel serves, and what it would serve, in a sentence without a full stop."""
        if self.fallback is None:
            return None
        hint = f" (a tuned kernel would serve the same call {self.nearest})" if self.nearest else ""
        return f"No tuned kernel serves this problem: {self.fallback}{hint}"


@lru_cache(maxsize=4096)
def plan_of(
    layout: Layout,
    query: Given,
    key: Given,
    value: Given,
    extras: tuple[Given | None, ...],
    options: Options,
    only: str,
) -> Plan:
    """The plan of a sound call, by the facts of its tensors. Raises ProblemError, UnsupportedError."""
    tensors = (Facts(*query), Facts(*key), Facts(*value))
    operands = Extras(*(None if each is None else Facts(*each) for each in extras)) if extras else NO_EXTRAS
    found = judged(layout, tensors, operands, options)
    problem = found.problem(options, operands)
    if found.device not in SERVED_DEVICES:
        listed = "{}, {} and {}".format(*layout.names)
        raise UnsupportedError(f"No kernel runs on {found.device} yet; move {listed} to the CPU or to a CUDA GPU.")
    return plan_for(found, problem, query[2], only)


def plan_for(found: Judged, problem: AttentionProblem, device: torch.device, only: str) -> Plan:
    """The plan for a problem. Raises UnsupportedError."""
    if found.device == "meta" or (found.varlen and not found.batch):
        return Plan(problem, Config(), slow.forward, "smscope", None)  # no numbers, or every row is of no sequence
    if found.empty:  # of packed sequences, which queries are used is known piece by piece
        piecewise = problem.ranges and found.varlen
        return Plan(problem, Config(), slow.forward if piecewise else slow.nothing_seen, "smscope", None)
    pick = _pick(problem, str(device) if device.type == "cuda" else "cpu", only)
    forced = pick.forced and (problem.edges.open or problem.seq_q == problem.seq_kv) and problem.head_dim % 8 == 0
    run = Settling(pick.run, pick.later, pick.graphs_alone) if pick.later is not None else pick.run
    return Plan(problem, pick.config, run, pick.owner, pick.fallback, pick.nearest, forced, pick.later is not None)


def _pick(problem: AttentionProblem, device: str, only: str) -> "_Pick":
    with suppress(UnsupportedError):
        return _pick_of(representative(problem), device, only)
    return _pick_of(problem, device, only)  # a refusal speaks of the call's own sizes, which nobody rounded


@dataclass(frozen=True)
class _Pick:
    config: Config
    run: Run
    owner: Owner
    fallback: str | None
    nearest: str | None
    forced: bool
    later: Run | None  # where another kernel serves a shape that is called often
    graphs_alone: bool = False  # that one, and the call is done sooner by `run` outside of graphs


@lru_cache(maxsize=4096)
def _pick_of(problem: AttentionProblem, device: str, only: str) -> _Pick:
    """Choose for a class of problems, by its representative. Raises UnsupportedError."""
    profile = machine_profile(device).profile
    choice = learned.choice_on(profile, problem, only=only or None)
    if not only and not by_path(choice.pick.variant).is_ready():
        # Not compiled in a thread beside the caller's: that holds the interpreter's lock for most of its seconds.
        warn_once(f"{choice.pick.variant} is not compiled on this machine yet; `smscope bench-attention` compiles it")
        choice = learned.choice_on(profile, problem, only="torch")
    pick = while_new(choice)
    forced = pick.variant == FLASH and choice.arch in CUDNN_FIRST and pick.prediction is not None
    # Torch's, which takes no configuration.
    later = None if pick is choice.pick else by_path(choice.pick.variant).load()
    graphs_alone = later is not None and stays(choice, pick)
    run = by_path(pick.variant).load()
    return _Pick(pick.config, run, pick.owner, choice.fallback, choice.nearest, forced, later, graphs_alone)


def cpu_is_torchs() -> bool:
    """Whether on this CPU our kernel won so few duels with torch's that no call without a mask can be given to it."""
    return never_won(learned.duels_of_machine(machine_profile("cpu").profile))


def warn_once(reason: str) -> bool:
    """Warn of a fallback, once per process and reason."""
    if reason not in _announced:
        warnings.warn(f"{reason}; torch serves this call.", FallbackWarning, stacklevel=_callers_level())
        _announced.add(reason)
    return True


def _callers_level() -> int:
    """The stacklevel, for warn_once, of the line that called into this package, through torch or not."""
    frame, level = sys._getframe(2), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS_AND_TORCHS):
        frame, level = frame.f_back, level + 1
    return level


# In a compiled graph it runs while that is traced, and leaves nothing behind. This is all that
# torch.compiler.assume_constant_result does; calling it imports the compiler, half of a first call's time.
setattr(warn_once, "_dynamo_marked_constant", True)  # noqa: B010
