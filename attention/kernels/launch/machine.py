"""The machine that tensors lie on, as launchers need it: a GPU through the CUDA driver, or what stands in for one."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Protocol

import torch

from attention.call import Extras
from attention.errors import LaunchError
from attention.kernels.launch import driver, tensor_map
from attention.kernels.launch.counters import PAIR, counters
from attention.kernels.launch.driver import Function
from attention.kernels.launch.loaded import function_of
from attention.variant import CudaBuild

Held = tuple[torch.Tensor, ...]


class Machine(Protocol):
    """What a launch asks of a machine.

    tensor_map   the 128 bytes by which TMA copies boxes (rows, columns) of a (B, H, S, D) tensor
    counters     the address of so many ints that are 0 whenever nothing of this stream runs
    launch       beside the argument it is told the tensors whose addresses are in there
    """

    @property
    def sm_count(self) -> int: ...
    def __hash__(self) -> int: ...
    def function(self, folder: Path, build: CudaBuild) -> Any: ...
    def tensor_map(self, tensor: torch.Tensor, box: tuple[int, int], swizzle: int) -> bytes: ...
    def counters(self, count: int = PAIR) -> int: ...
    def launch(
        self, function: Any, blocks: int, threads: int, argument: ctypes.Structure, held: Held, extras: Extras
    ) -> None: ...


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

    def tensor_map(self, tensor: torch.Tensor, box: tuple[int, int], swizzle: int) -> bytes:
        is_bfloat16 = tensor.dtype == torch.bfloat16
        return tensor_map.encode(tensor.data_ptr(), tensor.shape, tensor.stride(), is_bfloat16, box, swizzle)

    def counters(self, count: int = PAIR) -> int:
        stream = driver.current_stream(self.index)
        return counters(self.index, count).address(stream, torch.cuda.is_current_stream_capturing())

    def launch(
        self, function: Function, blocks: int, threads: int, argument: ctypes.Structure, held: Held, extras: Extras
    ) -> None:
        """On the current stream of torch. Raises LaunchError."""
        pointer = ctypes.c_void_p(ctypes.addressof(argument))
        driver.launch(function, blocks, threads, driver.current_stream(self.index), ctypes.addressof(pointer))


gpu = cache(Gpu)
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
