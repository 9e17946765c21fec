"""What the driver is handed for a launch, in its own structures, which lie ready: a launch writes addresses and stream.

cuda.bindings makes Python objects of every argument of every call, so that cuLaunchKernelEx, which takes four
addresses, is called through ctypes. The structures are those of cuda.h, the same in every driver since CUDA 11.8.
"""

import ctypes
from functools import cache
from typing import Any

from attention.kernels.common.layout import Where
from attention.kernels.launch import driver
from attention.kernels.launch.driver import Function

CLUSTER_DIMENSION = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION


class Attribute(ctypes.Structure):
    """CUlaunchAttribute that says of how many blocks a cluster is."""

    _fields_ = (
        ("id", ctypes.c_int),
        ("unused", ctypes.c_int),
        ("sides", ctypes.c_uint * 3),
        ("rest", ctypes.c_uint * 13),
    )


class Configuration(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("smem_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("attribute_count", ctypes.c_uint),
    )


@cache
def launcher() -> Any:
    """cuLaunchKernelEx(configuration, function, addresses of arguments, 0) -> status; other threads run meanwhile."""
    found = ctypes.CDLL("libcuda.so.1").cuLaunchKernelEx
    found.argtypes, found.restype = (ctypes.c_void_p,) * 4, ctypes.c_int
    return found


class Described:
    """A launch of a kernel with one argument: one launch's at a time, until that has been made.

    argument   the fields of the kernel's argument, to be written before the launch
    memory     the same bytes
    where      whose addresses the argument begins with, where that is known
    given      the addresses of the tensors of features that were written last, where a launch is bound to some
    """

    __slots__ = ("argument", "blocks", "function", "given", "memory", "threads", "where")

    def __init__(self, function: Any, blocks: int, threads: int, kind: type[ctypes.Structure], template: bytes) -> None:
        self.function, self.blocks, self.threads = function, blocks, threads
        self.memory = bytearray(template)
        self.argument: Any = kind.from_buffer(self.memory)
        self.where: Where | None = None
        self.given: list[int] | None = None


class Frame(Described):
    """The same with what the driver reads."""

    __slots__ = ("_attribute", "_configuration", "_held", "_launch", "_places")

    def __init__(
        self, function: Function, blocks: int, threads: int, kind: type[ctypes.Structure], template: bytes
    ) -> None:
        super().__init__(function, blocks, threads, kind, template)
        self._attribute = Attribute(CLUSTER_DIMENSION, 0, (function.cluster, 1, 1))
        clusters = function.cluster > 1
        attributes = ctypes.addressof(self._attribute) if clusters else None
        sides = (blocks, 1, 1), (threads, 1, 1)
        self._configuration = Configuration(*sides, function.smem_bytes, None, attributes, int(clusters))
        self._held = ctypes.c_void_p(ctypes.addressof(self.argument))
        self._places = ctypes.addressof(self._configuration), function.handle, ctypes.addressof(self._held), None
        self._launch = launcher()

    def launch(self, stream: int) -> None:
        """Raises LaunchError."""
        self._configuration.stream = stream
        status = self._launch(*self._places)
        if status:
            self._again(status)

    def _again(self, status: int) -> None:
        if status == driver.INVALID_CONTEXT:  # a thread's first call, whose memory torch had at hand
            driver.make_current()
            status = self._launch(*self._places)
        clusters = f" in clusters of {self.function.cluster}" if self.function.cluster > 1 else ""
        driver.check((driver.bindings().CUresult(status),), f"launch an attention kernel{clusters}")
