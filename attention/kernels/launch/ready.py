"""A launch that is ready for tensors of one kind: of the same shapes, strides and dtype, for one problem and kernel.

Once for a kind    the kernel is loaded, its grid dealt, its argument filled, and it is known how results lie
Each launch        memory for results, addresses, counters, what features bring, and the stream
"""

from dataclasses import dataclass, field, replace
from typing import Any

import torch

from attention.call import NO_EXTRAS, Extras
from attention.kernels.common.layout import Where
from attention.kernels.launch.frame import Described
from attention.kernels.launch.machine import Held, Machine
from attention.kernels.launch.tensors import place

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

    def turned(self) -> "Lie":
        """With heads and rows, or rows and heads, the other way round."""
        (a, b, c, d), (e, f, g, h) = self.size, self.strides
        return replace(self, size=(a, c, b, d), strides=(e, g, f, h))


@dataclass(frozen=True, eq=False)
class Ready:
    """What is decided, and what launches leave for the next ones.

    kernel    a Launcher: what one kernel has of its own
    out, lse  what the kernel writes, and how that lies
    result    how the first columns of out are given, where out is wider than they are; else None
    turned    query, key, value and out are (B, S, H, D) in the caller's hands, else (B, H, S, D)
    heads     what the argument begins with, by the addresses of query, key and value
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
    turned: bool = False
    heads: dict[Where, bytes] = field(default_factory=dict)
    frames: list[Described] = field(default_factory=list)

    def as_rows_of_heads(self) -> "Ready":
        """The same launch for a caller whose tensors are (B, S, H, D)."""
        result = None if self.result is None else self.result.turned()
        return replace(self, turned=True, out=self.out.turned(), result=result)

    def __call__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        where: Where,
        extras: Extras = NO_EXTRAS,
        with_lse: bool = True,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """(out, lse) of tensors of this kind at these addresses, multiples of 16. Raises LaunchError."""
        machine = self.machine
        out = machine.empty(self.out.size, self.out.strides, self.out.dtype)
        unread = None if with_lse else machine.unread(self.lse_bytes)
        lse = None if unread is not None else machine.empty(self.lse.size, self.lse.strides, self.lse.dtype)
        head = self.heads.get(where) or self._head(query, key, value, where)
        try:
            frame = self.frames.pop()  # which no other thread can have then
        except IndexError:
            frame = machine.frame(self.function, self.blocks, self.shape.threads, self.kernel.argument, self.template)
        frame.memory[: len(head)] = head
        argument = frame.argument
        argument.out, argument.lse = out.data_ptr(), unread if lse is None else lse.data_ptr()
        if self.kernel.counts:
            argument.counters = machine.counters()
        lent: Held = ()
        if self.kernel.lend is not None:
            lent = self.kernel.lend(argument, machine, self.shape, query)
        if extras is not NO_EXTRAS:
            place(argument, extras)
        held = (query, key, value, out, *lent) if lse is None else (query, key, value, out, lse, *lent)
        machine.launch(frame, held, extras)
        if extras is NO_EXTRAS:  # else the next launch might find addresses that it does not bring
            self.frames.append(frame)
        if self.result is not None:
            wide, out = out, machine.empty(self.result.size, self.result.strides, self.result.dtype)
            out.copy_(wide[..., : out.shape[-1]])
        return out, lse

    def _head(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, where: Where) -> bytes:
        if self.turned:
            query, key, value = query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)
        if len(self.heads) >= MOST_HEADS:
            self.heads.clear()
        head: bytes = self.kernel.head(self.machine, self.shape, query, key, value)
        self.heads[where] = head
        return head
