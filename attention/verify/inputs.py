"""The tensors of a case, in memory where a wrong access shows: NaN all around, and NaN where results are to be written.

`exact` leaves out the room around a tensor, for a checking tool that knows the bounds of an allocation.
"""

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from attention import torch_private
from attention.call import STARTS, Extras, Tensors
from attention.feature import Feature, Operand
from attention.features import FEATURES
from attention.kernels.common import layout
from attention.problem import AttentionProblem
from attention.verify.problems import Case

GUARD = 4096  # elements before and behind every tensor: more than one tile reaches beyond its edge
FAR = 2  # rows, heads or elements of which a sliced tensor leaves out some


def tensors_of(case: Case, device: torch.device, exact: bool = False) -> Tensors:
    """Draw a case's tensors on a device."""
    problem, random = case.problem, torch.Generator(device).manual_seed(case.seed * 1_000_003 + case.index)
    dtype = getattr(torch, problem.dtype)
    rows, keys = (problem.tokens_q, problem.tokens_kv) if case.lengths else (problem.seq_q, problem.seq_kv)
    batch = 1 if case.lengths else problem.batch

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=random, device=device)

    query = normal(batch, problem.heads_q, rows, problem.head_dim)
    widths = problem.head_dim, problem.head_dim_v
    key, value = (normal(batch, problem.heads_kv, keys, width) for width in widths)
    if case.values == "peaked":
        query *= 4
    elif case.values in ("rising", "falling"):
        growth = torch.linspace(0.1, 4.0, keys, device=device)
        key *= (growth if case.values == "rising" else growth.flip(0))[:, None]
    elif case.values == "offset":
        key, value = key + 1, value + 2
    q, k, v = (
        _placed(each.to(dtype), where, exact) for each, where in zip((query, key, value), case.layouts, strict=True)
    )
    lengths = torch.tensor(case.lengths or [(rows, keys)] * batch, device=device)
    extras = _extras(case, Draw(random, device, case.density, problem, *lengths.unbind(1)), exact)
    if problem.ranges:
        for tensor, where, used in zip((q, k, v), case.layouts, used_rows(case, extras), strict=True):
            if where != "expanded":
                tensor.masked_fill_(~used, torch.nan)
    return Tensors(q, k, v, extras)


def used_rows(case: Case, extras: Extras) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Which rows of query, key and value a case's ranges use: (batch, 1, rows, 1). Others may hold anything."""
    found = []
    for side, end, begin in ((0, extras.seqused_q, None), (1, extras.seqused_k, extras.leftpad_k)):
        given = case.lengths or [(case.problem.seq_q, case.problem.seq_kv)] * case.problem.batch
        rows = torch.cat([torch.arange(each[side]) for each in given])
        of = torch.cat([torch.full((each[side],), number) for number, each in enumerate(given)])
        inside = torch.ones(len(rows), dtype=torch.bool)
        if end is not None:
            inside &= rows < end.cpu()[of]
        if begin is not None:
            inside &= rows >= begin.cpu()[of]
        batch = 1 if case.lengths else case.problem.batch
        spare = torch.ones(case.spare[side] if case.lengths else 0, dtype=torch.bool)  # NaN or not, nobody's
        device = next(each.device for each in (end, begin, extras.seqused_k) if each is not None)
        found.append(torch.cat([inside, spare]).view(batch, 1, -1, 1).to(device))
    return found[0], found[1], found[1]


def on_host(tensors: Tensors) -> Tensors:
    """Copies in host memory, as contiguous as they come."""
    extras = Extras(*(None if held is None else held.cpu() for held in tensors.extras))
    return Tensors(tensors.query.cpu(), tensors.key.cpu(), tensors.value.cpu(), extras)


@dataclass(frozen=True)
class Draw:
    """Random numbers for an operand; `density` is that of a mask, `queries` and `keys` are each sequence's."""

    random: torch.Generator
    device: torch.device
    density: float
    problem: AttentionProblem
    queries: torch.Tensor
    keys: torch.Tensor

    def normal(self, *shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=self.random, device=self.device)

    def uniform(self, *shape: int) -> torch.Tensor:
        return torch.rand(shape, generator=self.random, device=self.device)


def _extras(case: Case, draw: Draw, exact: bool) -> Extras:
    problem = case.problem
    sizes = dict(zip("bhqk", (problem.batch, problem.heads_q, problem.seq_q, problem.seq_kv), strict=True))
    found: dict[str, torch.Tensor] = {}
    for feature in FEATURES:
        for operand in feature.operands if any(word.asked(problem) for word in feature.words) else ():
            tensor = _operand(feature, operand, case, sizes, draw, exact)
            if tensor is not None:
                found[operand.name] = tensor
    if case.lengths:
        for name, lengths in zip(STARTS, zip(*case.lengths, strict=True), strict=True):
            found[name] = torch.tensor([0, *lengths]).cumsum(0).to(draw.device, torch.int32)
    return Extras(**found)


def _operand(
    feature: Feature, operand: Operand, case: Case, sizes: dict[str, int], draw: Draw, exact: bool
) -> torch.Tensor | None:
    """Of every size that it has, some of them broadcast; expanded, as a kernel is given it."""
    full = tuple(sizes[axis] for axis in operand.axes)
    may = operand.axes if operand.stretch else operand.leaves
    shape = tuple(1 if axis in may and axis not in case.stretched else sizes[axis] for axis in operand.axes)
    values = feature.values(draw, operand, shape)
    if values is None:
        return None
    if operand.holds == "mask" and values.is_floating_point():
        values = values.to(getattr(torch, case.problem.mask_dtype or case.problem.dtype))
    if operand.stretch and case.stretched.endswith("T"):
        return _poisoned(values.transpose(-1, -2).contiguous(), exact).transpose(-1, -2).expand(full)
    return _poisoned(values, exact).expand(full)


def _poisoned(values: torch.Tensor, exact: bool) -> torch.Tensor:
    """The values, contiguous, amid NaN; a boolean mask amid bytes that hide nothing, counts amid the largest."""
    room = _room(values.numel(), values.dtype, values.device, exact)
    return room.view(values.shape).copy_(values)


def _room(count: int, dtype: torch.dtype, device: torch.device, exact: bool, shift: int = 0) -> torch.Tensor:
    """`count` poisoned elements that begin `shift` elements behind an aligned address."""
    guard = 0 if exact else GUARD
    filling = True if dtype == torch.bool else torch.nan if dtype.is_floating_point else torch.iinfo(dtype).max
    whole = torch.full((count + shift + 2 * guard,), filling, dtype=dtype, device=device)
    return whole[guard + shift : guard + shift + count]


def _placed(values: torch.Tensor, where: str, exact: bool) -> torch.Tensor:
    """A tensor of these values that lies in memory as `where` says, in the midst of NaN."""
    batch, heads, rows, width = values.shape
    if where == "expanded":
        values = values[:1].expand(batch, -1, -1, -1) if batch > 1 else values[:, :1].expand(-1, heads, -1, -1)
        held = _poisoned(values[:1] if batch > 1 else values[:, :1], exact)
        return held.expand(batch, heads, rows, width)
    order = {"bshd": (0, 2, 1, 3), "sliced bshd": (0, 2, 1, 3), "transposed": (0, 1, 3, 2)}.get(where, (0, 1, 2, 3))
    sliced = where.startswith("sliced")
    # Eight elements are 16 bytes, which keeps a slice's rows where TMA wants them.
    margin = (0, FAR, FAR, 8) if sliced else (0, 0, 0, 0)
    step = 2 if where == "strided" else 1
    sizes = [size + extra for size, extra in zip(values.shape, margin, strict=True)]
    sizes[3] *= step
    total = sizes[0] * sizes[1] * sizes[2] * sizes[3]
    room = _room(total, values.dtype, values.device, exact, 1 if where == "misaligned" else 0)
    whole = room.view([sizes[at] for at in order]).permute(order)  # each of these orders is its own inverse
    if sliced:
        whole = whole[:, 1 : 1 + heads, 1 : 1 + rows, 8:]
    return whole[..., ::step].copy_(values)


class Results:
    """Memory for out and lse, all NaN, with more NaN before and behind it."""

    empty_out = staticmethod(layout.empty_out)
    empty_lse = staticmethod(layout.empty_lse)
    empty_on_gpu = staticmethod(torch_private.empty_on_current_gpu)
    empty_on_host = staticmethod(layout.empty_on_host)

    def __init__(self, exact: bool) -> None:
        self.exact = exact
        self.whole: list[tuple[torch.Tensor, int, int]] = []

    def out(self, query: torch.Tensor, head_dim_v: int, dtype: torch.dtype | None = None) -> torch.Tensor:
        """attention.kernels.common.layout.empty_out, poisoned."""
        return self._like(self.empty_out(query, head_dim_v, dtype))

    def lse(self, query: torch.Tensor) -> torch.Tensor:
        """attention.kernels.common.layout.empty_lse, poisoned."""
        return self._like(self.empty_lse(query))

    def on_gpu(self, size: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """attention.torch_private.empty_on_current_gpu, poisoned."""
        return self._like(self.empty_on_gpu(size, strides, dtype))

    def on_host(self, size: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """attention.kernels.common.layout.empty_on_host, poisoned."""
        return self._like(self.empty_on_host(size, strides, dtype))

    def _like(self, plain: torch.Tensor) -> torch.Tensor:
        if plain.is_meta:  # a launcher asks how results will lie
            return plain
        guard, count = 0 if self.exact else GUARD, plain.numel()
        span = 1 + sum((size - 1) * stride for size, stride in zip(plain.shape, plain.stride(), strict=True))
        assert span == count, "layout gives dense tensors"
        whole = torch.full((count + 2 * guard,), torch.nan, dtype=plain.dtype, device=plain.device)
        self.whole.append((whole, guard, count))
        return whole.as_strided(plain.shape, plain.stride(), guard)

    def hold(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor lies in this memory."""
        places = [whole.untyped_storage().data_ptr() for whole, _, _ in self.whole]
        return tensor.untyped_storage().data_ptr() in places

    def strayed(self) -> bool:
        """Whether anything was written outside of a result."""
        return any(
            not bool(torch.isnan(part).all())
            for whole, guard, count in self.whole
            for part in (whole[:guard], whole[guard + count :])
        )


@contextmanager
def poisoned_results(exact: bool = False) -> Iterator[Results]:
    """Inside, out and lse of any kernel are NaN before they are written, and so is what torch.empty gives."""
    results = Results(exact)
    poisoned: dict[Callable[..., torch.Tensor], Callable[..., torch.Tensor]] = {
        layout.empty_out: results.out,
        layout.empty_lse: results.lse,
        layout.empty_on_host: results.on_host,
        torch_private.empty_on_current_gpu: results.on_gpu,
    }
    places = list(_held(poisoned))
    fills = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    for holder, name, held, plain in places:
        new = poisoned[plain]
        setattr(holder, name, staticmethod(new) if isinstance(held, staticmethod) else new)
    torch.utils.deterministic.fill_uninitialized_memory = True  # type: ignore[attr-defined]
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield results
    finally:
        for holder, name, held, _ in places:
            setattr(holder, name, held)
        torch.use_deterministic_algorithms(False)
        torch.utils.deterministic.fill_uninitialized_memory = fills  # type: ignore[attr-defined]


def _held(plain: Collection[Any]) -> Iterator[tuple[Any, str, Any, Any]]:
    """Where modules of ours and their classes hold one of these functions: holder, name, what it holds, and which."""
    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] == "attention"]
    for module in modules:
        own = (each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__)
        for holder in (module, *(each for each in own if each is not Results)):
            for name, held in list(vars(holder).items()):
                function = held.__func__ if isinstance(held, staticmethod) else held
                if any(function is each for each in plain):
                    yield holder, name, held, function
