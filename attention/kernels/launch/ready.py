"""A launch that is ready for tensors of one kind: of the same shapes, strides and dtype, for one problem and kernel.

Once for a kind    the kernel is loaded, its grid dealt, its argument filled, and it is known how results lie
Each launch        memory for results, addresses, counters, what features bring, and the stream

Tensors of features may lie otherwise at the next launch, so that addresses and strides of all are written anew; a
launch that is bound to how some of them lie writes no more than their addresses.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import torch

from attention.call import NO_EXTRAS, Extras
from attention.kernels.common.key_splits import MOST_TILES
from attention.kernels.common.layout import Where, empty_lse
from attention.kernels.launch.forms import HEADS_FIRST, Form, View
from attention.kernels.launch.frame import Described
from attention.kernels.launch.machine import Held, Machine
from attention.kernels.launch.tensors import ADDRESSES, outputs, place

FLOAT_BYTES = 4
MOST_LIES = 4096
MOST_HEADS = 256  # that a kind keeps: a program that brings new addresses for ever would fill the memory with them


@dataclass(frozen=True)
class Lie:
    """How a tensor lies in memory: what it takes to make another one like it. Strides are in elements."""

    size: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype

    @classmethod
    def of(cls, tensor: torch.Tensor) -> "Lie":
        return cls(tuple(tensor.shape), tensor.stride(), tensor.dtype)

    @lru_cache(maxsize=MOST_LIES)  # noqa: B019  few: results lie alike whatever the number of keys is
    def seen(self, by: View) -> "Lie":
        """How a view of such a tensor lies."""
        return Lie.of(by(torch.empty_strided(self.size, self.strides, dtype=self.dtype, device="meta")))


@dataclass(frozen=True)
class Results:
    """How what a kernel writes lies. `narrow`: how the first columns of out are given, where out is wider than they."""

    out: Lie
    lse: Lie
    lse_bytes: int
    narrow: Lie | None


@lru_cache(maxsize=MOST_LIES)
def results_for(size: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype, width: int) -> Results:
    """Of a query (B, Hq, Sq, D) that lies so, and of so many columns of value."""
    query = torch.empty_strided(size, strides, dtype=dtype, device="meta")
    (out, written), lse = outputs(query, width), empty_lse(query)
    return Results(Lie.of(written), Lie.of(lse), lse.nbytes, None if written is out else Lie.of(out))


def lend(argument: Any, machine: Machine, room: int) -> Held:
    """Write where blocks leave so many floats, and where they count arrivals: the stream's or the graph's own.

    Memory of torch's where it must be of its own, which a graph that is captured keeps.
    """
    argument.arrivals = machine.counters(MOST_TILES)
    argument.partials = lent = machine.scratch(FLOAT_BYTES * room)
    if lent is not None:
        return ()
    partials = machine.empty((room,), (1,), torch.float32)
    argument.partials = partials.data_ptr()
    return (partials,)


@dataclass(frozen=True, eq=False)
class Ready:
    """What is decided, and what launches leave for the next ones.

    kernel    a Launcher: what one kernel has of its own
    out, lse  what the kernel writes, and how that lies
    result    how the first columns of out are given, where out is wider than they are; else None
    room      how many floats blocks leave for one another
    columns   of V and out that each of two launches has, where one does not hold all; else 0
    form      how the caller holds query, key, value, out and lse
    bound     where the addresses stand of the tensors of features to whose strides the template is bound
    heads     what the argument begins with, by the addresses of query, key and value
    masks     how TMA reads a mask, by its address, where a launch is bound to its strides
    frames    those that no launch uses now
    """

    kernel: Any
    machine: Machine
    shape: Any
    function: Any
    blocks: int
    template: bytes
    out: Lie
    lse: Lie
    lse_bytes: int
    result: Lie | None = None
    room: int = 0
    columns: int = 0
    form: Form = HEADS_FIRST
    bound: tuple[str, ...] = ()
    heads: dict[Where, bytes] = field(default_factory=dict)
    masks: dict[int, bytes] = field(default_factory=dict)
    frames: list[Described] = field(default_factory=list)

    def held_as(self, form: Form) -> "Ready":
        """The same launch for a caller who holds tensors so."""
        result = None if self.result is None else self.result.seen(form.out)
        return replace(self, form=form, out=self.out.seen(form.out), lse=self.lse.seen(form.lse), result=result)

    def bound_to(self, extras: Extras, names: Sequence[str]) -> "Ready":
        """The same launch for calls that all bring these tensors of features, of the same strides: those of `names`."""
        memory = bytearray(self.template)
        place(self.kernel.argument.from_buffer(memory), extras)
        bound = tuple(ADDRESSES[name] for name in names)
        return replace(self, template=bytes(memory), bound=bound, masks={}, frames=[])

    def __call__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        where: Where,
        extras: Extras | Sequence[torch.Tensor] = NO_EXTRAS,
        with_lse: bool = True,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """(out, lse) of tensors of this kind at these addresses, multiples of 16. Raises LaunchError.

        `extras`: as the kernel reads them; of a launch that is bound, those of `bound` alone, in that order.
        """
        machine = self.machine
        out = machine.empty(self.out.size, self.out.strides, self.out.dtype)
        unread = None if with_lse else machine.unread(self.lse_bytes)
        lse = None if unread is not None else machine.empty(self.lse.size, self.lse.strides, self.lse.dtype)
        head = self.head_of(query, key, value, where)
        try:
            frame = self.frames.pop()  # which no other thread can have then
        except IndexError:
            frame = machine.frame(self.function, self.blocks, self.shape.threads, self.kernel.argument, self.template)
        frame.memory[: len(head)] = head
        argument = frame.argument
        argument.out, argument.lse = out.data_ptr(), unread if lse is None else lse.data_ptr()
        if self.kernel.counts:
            argument.counters = machine.counters()
        lent = lend(argument, machine, self.room) if self.room else ()
        if self.bound:
            self.bring(frame, extras)
        elif extras is not NO_EXTRAS:
            place(argument, extras)  # type: ignore[arg-type]
            self._box(frame, extras.mask)  # type: ignore[union-attr]
        held = (query, key, value, out, *lent) if lse is None else (query, key, value, out, lse, *lent)
        machine.launch(frame, held, extras)
        if self.columns:
            self._launch_again(frame, held, where, extras)
        if self.bound or extras is NO_EXTRAS:  # else the next launch might find addresses that it does not bring
            self.frames.append(frame)
        if self.result is not None:
            wide, out = out, machine.empty(self.result.size, self.result.strides, self.result.dtype)
            out.copy_(wide[..., : out.shape[-1]])
        return out, lse

    def _launch_again(
        self, frame: Described, held: Held, where: Where, extras: Extras | Sequence[torch.Tensor]
    ) -> None:
        """The launch that was made over the last columns of V and out; it writes the same lse once more."""
        query, key, value, out, *_ = held
        first = value.shape[-1] - self.columns
        beyond = first * value.element_size()
        head = self.head_of(query, key, value[..., first:], (*where[:2], where[2] + beyond))
        frame.memory[: len(head)] = head
        frame.argument.out = out.data_ptr() + beyond
        self.machine.launch(frame, held, extras)

    def bring(self, frame: Described, given: Sequence[torch.Tensor]) -> None:
        """Write the addresses of the tensors of features to whose strides the launch is bound: those of `bound`."""
        for name, tensor in zip(self.bound, given, strict=True):
            setattr(frame.argument, name, tensor.data_ptr())
            if name == "mask":
                self._box(frame, tensor)

    def _box(self, frame: Described, mask: torch.Tensor) -> None:
        """Write how TMA reads this mask, where the tile has it so."""
        if self.kernel.boxed is not None and self.shape.mask_boxes:
            at, encoded = self.kernel.argument.mask_map.offset, self.masks.get(mask.data_ptr()) or self._mask(mask)
            frame.memory[at : at + len(encoded)] = encoded

    def _mask(self, mask: torch.Tensor) -> bytes:
        encoded: bytes = self.kernel.boxed(self.machine, self.shape, mask)
        if self.bound:  # else the next mask at this address may lie otherwise
            if len(self.masks) >= MOST_HEADS:
                self.masks.clear()
            self.masks[mask.data_ptr()] = encoded
        return encoded

    def head_of(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, where: Where) -> bytes:
        """What the argument begins with, for tensors of this kind at these addresses; of V for one launch."""
        found = self.heads.get(where)
        if found is not None:
            return found
        value = value[..., : self.columns] if self.columns else value
        if len(self.heads) >= MOST_HEADS:
            self.heads.clear()
        head: bytes = self.kernel.head(self.machine, self.shape, *map(self.form.to_kernel, (query, key, value)))
        self.heads[where] = head
        return head
