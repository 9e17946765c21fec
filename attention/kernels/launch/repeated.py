"""A launch over and over for out alone: as Ready makes it, in as few steps of Python as it takes.

Of a call of a few microseconds the host's part is the longer one, and steps of Python are most of that. All that no
launch of the kind changes is looked up once here, the address of an lse that nobody reads is written once, and what the
argument begins with only where tensors lie elsewhere than at the frame's last launch. Beside a driver that does nothing
that takes 1.4 us of 5.9 from a call of the sm90a forward.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from attention.call import NO_EXTRAS
from attention.kernels.common.layout import Where
from attention.kernels.launch.frame import Described
from attention.kernels.launch.machine import machine_of, stand_ins
from attention.kernels.launch.ready import Ready, lend

Again = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, Where, Sequence[torch.Tensor]], Any]


def again(ready: Ready) -> Again | None:
    """Out of tensors of this kind at these addresses; that gives None where another machine stands in for theirs.

    `given` are the tensors of features to which the launch is bound. None where a launch has more to do: an lse too
    long to be nobody's, columns to be cut off, or others to be launched for.
    """
    kernel, machine, kind = ready.kernel, ready.machine, ready.kernel.argument
    unread = machine.unread(ready.lse_bytes)
    if unread is None or ready.result is not None or ready.columns:
        return None
    first = kind.from_buffer_copy(ready.template)
    first.lse = unread
    described = ready.function, ready.blocks, ready.shape.threads, kind, bytes(first)
    size, strides, dtype = ready.out.size, ready.out.strides, ready.out.dtype
    counts, room, empty, launch = kernel.counts, ready.room, machine.empty, machine.launch
    head_of, frames, bound = ready.head_of, list[Described](), ready.bound

    def serve(
        query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, where: Where, given: Sequence[torch.Tensor]
    ) -> torch.Tensor | None:
        if stand_ins and machine_of(query.device) is not machine:
            return None
        out = empty(size, strides, dtype)
        try:
            frame = frames.pop()  # which no other thread can have then
        except IndexError:
            frame = machine.frame(*described)
        if frame.where != where:
            head = head_of(query, key, value, where)
            frame.memory[: len(head)] = head
            frame.where = where
        argument = frame.argument
        if bound and frame.given != (brought := [each.data_ptr() for each in given]):
            ready.bring(frame, given)
            frame.given = brought
        argument.out = out.data_ptr()
        if counts:
            argument.counters = machine.counters()
        held = (query, key, value, out, *lend(argument, machine, room)) if room else (query, key, value, out)
        launch(frame, held, given if bound else NO_EXTRAS)
        frames.append(frame)
        return out

    return serve
