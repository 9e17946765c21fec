"""The machine that tensors lie on, as launchers need it: a GPU through the CUDA driver, or what stands in for one."""

import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Protocol

import torch

from attention.errors import LaunchError
from attention.kernels.launch import driver, tensor_map
from attention.kernels.launch.counters import PAIR, Counters, counters, identity
from attention.kernels.launch.driver import Function
from attention.kernels.launch.frame import Described, Frame
from attention.kernels.launch.loaded import function_of
from attention.torch_private import empty_on_current_gpu
from attention.variant import CudaBuild

Held = tuple[torch.Tensor, ...]
# As driver.current_stream, and what torch.cuda asks of a capture; a torch for CPUs has none of them.
_stream: Callable[[int], int] = getattr(torch._C, "_cuda_getCurrentRawStream", driver.current_stream)
_is_capturing: Callable[[], bool] = getattr(torch._C, "_cuda_isCurrentStreamCapturing", lambda: False)
# What a call of a few microseconds leaves between its blocks: memory of torch's takes the host half a microsecond.
SCRATCH_BYTES = 1 << 20
UNREAD_BYTES = 1 << 20  # the lse of 262,144 rows: of a call with more the host's microseconds are no part to speak of


class Machine(Protocol):
    """What a launch asks of a machine.

    tensor_map   the 128 bytes by which TMA copies boxes (..., rows, columns) of a tensor of four or five dimensions
    counters     the address of so many ints that are 0 whenever nothing of this stream runs
    empty        a tensor of a size, strides in elements, and a dtype
    scratch      the address of so many bytes that a launch on this stream has while it runs; None where there are not
    unread       the address of so many bytes that every launch may write and none reads; None where there are not
    frame        where launches of a function are described, one after another, beginning with these bytes
    launch       beside what is described it is told the tensors whose addresses are in there
    """

    @property
    def sm_count(self) -> int: ...
    def __hash__(self) -> int: ...
    def function(self, folder: Path, build: CudaBuild) -> Any: ...
    def tensor_map(self, tensor: torch.Tensor, box: tuple[int, ...], swizzle: int) -> bytes: ...
    def counters(self, count: int = PAIR) -> int: ...
    def empty(self, size: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor: ...
    def scratch(self, size: int) -> int | None: ...
    def unread(self, size: int) -> int | None: ...
    def frame(
        self, function: Any, blocks: int, threads: int, kind: type[ctypes.Structure], template: bytes
    ) -> Described: ...
    def launch(self, frame: Any, held: Held, extras: Sequence[torch.Tensor | None]) -> None: ...


@dataclass(frozen=True, eq=False)
class Gpu:
    """The GPU of this index, which is the current one."""

    index: int

    @cached_property
    def sm_count(self) -> int:
        return torch.cuda.get_device_properties(self.index).multi_processor_count

    def function(self, folder: Path, build: CudaBuild) -> Function:
        """Raises BuildError or LaunchError."""
        return function_of(torch.device("cuda", self.index), folder, build)

    def tensor_map(self, tensor: torch.Tensor, box: tuple[int, ...], swizzle: int) -> bytes:
        return tensor_map.encode(tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype, box, swizzle)

    def counters(self, count: int = PAIR) -> int:
        found, stream = self._sets.get(count) or self._set(count), _stream(self.index)
        if _is_capturing():
            return found.address(stream, True)
        return found.of_handle.get(stream) or found.address(stream, False)

    @cached_property
    def _sets(self) -> dict[int, Counters]:
        return {}

    def _set(self, count: int) -> Counters:
        found = self._sets[count] = counters(self.index, count)
        return found

    empty = staticmethod(empty_on_current_gpu)

    def scratch(self, size: int) -> int | None:
        """One for each of torch's own streams: a captured launch may be replayed beside any stream's work."""
        if size > SCRATCH_BYTES or _is_capturing():
            return None
        stream = _stream(self.index)
        return self._scratches.get(stream) or self._scratch(stream)

    @cached_property
    def _scratches(self) -> dict[int, int]:
        return {}

    def _scratch(self, stream: int) -> int | None:
        if identity(self.index, stream) is not None:
            return None
        with _lock:
            if stream not in self._scratches:
                self._scratches[stream] = driver.zeroed(SCRATCH_BYTES)
        return self._scratches[stream]

    def unread(self, size: int) -> int | None:
        return self._unread if size <= UNREAD_BYTES else None

    @cached_property
    def _unread(self) -> int:
        return driver.zeroed(UNREAD_BYTES)

    def frame(
        self, function: Function, blocks: int, threads: int, kind: type[ctypes.Structure], template: bytes
    ) -> Frame:
        return Frame(function, blocks, threads, kind, template)

    def launch(self, frame: Frame, held: Held, extras: Sequence[torch.Tensor | None]) -> None:
        """On the current stream of torch. Raises LaunchError."""
        frame.launch(_stream(self.index))


gpu = cache(Gpu)
_lock = threading.Lock()
stand_ins: dict[str, Machine] = {}  # by the type of a device


@contextmanager
def standing_in(device: str, machine: Machine) -> Iterator[None]:
    """Inside, launches of tensors on such devices are this machine's: the emulator's for "cpu", say."""
    stand_ins[device] = machine
    try:
        yield
    finally:
        del stand_ins[device]


def machine_of(device: torch.device) -> Machine:
    """Raises LaunchError for a device that no kernel of ours runs on."""
    machine = stand_ins.get(device.type)
    if machine is not None:
        return machine
    if device.type == "cuda":
        return gpu(device.index)
    raise LaunchError(f"A kernel for a GPU was given tensors on {device}; move them to the GPU.")
