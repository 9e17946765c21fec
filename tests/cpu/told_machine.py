"""Machines that stand in for a GPU, for calls of CPU tensors: one keeps what it was told, another computes it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from attention.judge.shapes import facts_of
from attention.kernels.launch.frame import Described
from attention.kernels.launch.machine import Held
from attention.kernels.launch.tensors import ADDRESSES
from attention.op import plan as plans
from attention.op.plan import _Pick
from attention.variant import by_path
from microbench.machine.arch import by_name

Maybe = torch.Tensor | None
NEW = frozenset({"out", "lse", "counters"})  # of each launch


@dataclass(frozen=True, eq=False)
class StandIn:
    """What any machine that stands in for a GPU has: it holds frames, and what launches one says what that does."""

    frames: list[Described] = field(default_factory=list)
    sm_count = 132

    def function(self, *_: Any) -> None: ...

    def tensor_map(self, *_: Any) -> bytes:
        return bytes(128)

    def counters(self, count: int = 2) -> int:
        return 64

    def empty(self, size: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        return torch.empty_strided(size, strides, dtype=dtype)

    def scratch(self, size: int) -> int:
        return 2 << 40

    def unread(self, size: int) -> int:
        return 1 << 40

    def frame(self, *described: Any) -> Described:
        self.frames.append(Described(*described))
        return self.frames[-1]


@dataclass(frozen=True, eq=False)
class Told(StandIn):
    """A machine that computes nothing, and keeps what each launch was told: fields, by the names of Launch.

    An address among `callers` stands for itself; where another tensor lies, a copy, for what that holds.
    """

    launches: list[dict[str, Any]] = field(default_factory=list)
    callers: set[int] = field(default_factory=set)

    def empty(self, size: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        return super().empty(size, strides, dtype).zero_()

    def launch(self, frame: Described, held: Held, extras: Sequence[Maybe]) -> None:
        argument, there = frame.argument, {each.data_ptr(): each for each in extras if each is not None}
        told = {name: getattr(argument, name) for name, _ in argument._fields_ if name not in NEW}
        for name in ADDRESSES.values():
            if told[name] is not None and told[name] not in self.callers:
                tensor = there[told[name]]
                told[name] = (tensor.dtype, tensor.shape, tensor.tolist())
        self.launches.append({name: bytes(each) if hasattr(each, "_length_") else each for name, each in told.items()})


@dataclass(frozen=True, eq=False)
class Computing(StandIn):
    """A machine that computes, in torch operations, what it is told to launch."""

    def tensor_map(self, tensor: torch.Tensor, *_: Any) -> bytes:
        return tensor.data_ptr().to_bytes(128, "little")

    def launch(self, frame: Described, held: Held, extras: Sequence[Maybe]) -> None:
        query, key, value, out, *lse = held
        assert frame.argument.out == out.data_ptr() and frame.argument.lse == (lse[0].data_ptr() if lse else 1 << 40)
        if query.shape[1] != frame.argument.heads:
            query, key, value, out = (each.transpose(1, 2) for each in (query, key, value, out))
        scores = query.double() @ key.double().mT / 8
        out.copy_(scores.softmax(-1) @ value.double())
        for each in lse:
            each.copy_(scores.logsumexp(-1))


def pick_of(path: str) -> Callable[..., _Pick]:
    variant = by_path(path)
    arch = by_name(variant.archs[0])

    def pick(problem: Any, *_: Any) -> _Pick:
        legal = (c for c in variant.configs() if variant.illegal is None or variant.illegal(problem, c, arch) is None)
        return _Pick(next(legal), variant.load(), "smscope", None, None, False, None)

    return pick


def judge_as_on_a_gpu(
    layout: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, _: float, options: Any, extras: Any, only: str
) -> Any:
    """As on a GPU, where kernels read ranges of rows themselves."""
    beside = tuple(None if each is None else facts_of(each) for each in extras.ranged())
    return plans.plan_of(layout, facts_of(q), facts_of(k), facts_of(v), beside, options, only)
