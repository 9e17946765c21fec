"""EmulatedDevice: launches a kernel with the call that CudaDevice's kernels take; buffers are NumPy arrays."""

import ctypes
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from microbench.emulator import toolchain
from microbench.emulator.tensor_map import TensorMap
from microbench.errors import BuildError, DeviceError, InputError

Mode = Literal["eager", "lazy", "random"]
MODES: tuple[Mode, ...] = ("eager", "lazy", "random")
Array = NDArray[Any]

_ERROR_BYTES = 4096


class _Launch(ctypes.Structure):
    """`emulator::Launch` of api.hpp."""

    _fields_ = (
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("cluster", ctypes.c_uint32 * 3),
        ("smem_bytes", ctypes.c_uint32),
        ("mode", ctypes.c_uint32),
        ("races", ctypes.c_uint32),
        ("argument_count", ctypes.c_uint32),
        ("favoured_warps", ctypes.c_uint32 * 2),
        ("starved_warps", ctypes.c_uint32 * 2),
        ("seed", ctypes.c_uint64),
        ("switches", ctypes.c_uint64),
        ("argument_bytes", ctypes.c_void_p),
        ("arguments", ctypes.c_void_p),
        ("error", ctypes.c_char_p),
        ("error_bytes", ctypes.c_uint32),
    )


@cache
def _runtime(path: str) -> ctypes.PyDLL:
    library = ctypes.PyDLL(path)
    library.smscope_allocate.restype = ctypes.c_void_p
    library.smscope_allocate.argtypes = [ctypes.c_uint64]
    library.smscope_free.argtypes = [ctypes.c_void_p]
    library.smscope_adopt.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
    return library


class EmulatedDevice:
    """The CPU as a GPU. Raises EnvironmentLacks where there is no C++ compiler.

    Args:
        mode: when asynchronous work happens: at issue, as late as allowed, or at random.
        seed: of the random mode, which also picks the next thread and the next blocks at random.
        races: whether to watch for races, and for missing fences between proxies; costs more than half of the time.
        favoured_warps: of every block, those that run before others whenever they can.
        starved_warps: those that run only where no other warp can.
    """

    def __init__(
        self,
        mode: Mode = "lazy",
        seed: int = 1,
        *,
        races: bool = True,
        favoured_warps: range = range(0),
        starved_warps: range = range(0),
    ) -> None:
        if mode not in MODES:
            raise InputError(f"No asynchronous mode is called {mode!r}; choose one of {', '.join(MODES)}.")
        self.mode: Mode = mode
        self.seed = seed
        self.races = races
        self.favoured_warps, self.starved_warps = favoured_warps, starved_warps
        # PyDLL keeps the interpreter's lock: the emulated machine is one per process.
        self._library = _runtime(str(toolchain.runtime()))

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> Array:
        """A buffer of global memory that ends at a guard page, filled with 0xFF: NaN as floating point."""
        kind = np.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
        address = self._library.smscope_allocate(size)
        if not address:
            raise DeviceError(f"The emulator has no memory for a buffer of {size} bytes; use smaller ones.")
        memory = (ctypes.c_uint8 * size).from_address(address)
        weakref.finalize(memory, self._library.smscope_free, address)
        array: Array = np.frombuffer(memoryview(memory), kind).reshape(shape)
        return array

    def full(self, shape: int | tuple[int, ...], value: complex, dtype: DTypeLike) -> Array:
        array = self.empty(shape, dtype)
        array[...] = value
        return array

    def asarray(self, values: ArrayLike) -> Array:
        """A copy in such a buffer, in row-major order."""
        given = np.asarray(values)
        array = self.empty(given.shape, given.dtype)
        array[...] = given
        return array

    @contextmanager
    def adopting(self, memory: Mapping[int, int]) -> Iterator[None]:
        """Inside, kernels may access these bytes of host memory too, by address; a buffer of its own has guards."""
        for address, size in memory.items():
            self._library.smscope_adopt(address, size)
        try:
            yield
        finally:
            for address in memory:
                self._library.smscope_free(address)

    def load(
        self,
        source: str,
        name: str,
        *,
        kernel: str,
        defines: Sequence[tuple[str, int | str]] = (),
        include: Sequence[Path] = (),
    ) -> "EmulatedKernel":
        """Build a CUDA source for the emulator, or take it from the cache. `name` stands in messages of the compiler.

        `include` names folders of headers beside the wrappers' own. Raises BuildError where the compiler refuses it.
        """
        library = toolchain.build_kernel(source, name, kernel, defines, include, watched=self.races)
        try:
            return EmulatedKernel(self, kernel, ctypes.PyDLL(str(library)))
        except OSError as error:
            if toolchain.MACHINE_IS_GONE in str(error):
                library.unlink(missing_ok=True)
                library = toolchain.build_kernel(source, name, kernel, defines, include, watched=self.races)
                return EmulatedKernel(self, kernel, ctypes.PyDLL(str(library)))
            lacks = str(error).rpartition("undefined symbol: ")[2]
            raise BuildError(
                f"{name} calls {lacks}, which the emulator lacks; microbench/emulator/builtins.hpp is what it has."
            ) from error


class EmulatedKernel:
    def __init__(self, device: EmulatedDevice, name: str, library: ctypes.PyDLL) -> None:
        self.device = device
        self.name = name
        self.switches = 0  # between threads, in the last block of the last launch
        self._launch = library.smscope_launch
        self._launch.argtypes = [ctypes.POINTER(_Launch)]

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        args: Sequence[Any],
        shared_mem: int = 0,
        *,
        cluster: tuple[int, ...] = (1,),
    ) -> None:
        """Run every block. Arrays that are not the device's own are copied to it and back.

        Args:
            grid: blocks, in up to three dimensions.
            block: threads, likewise.
            args: arrays, tensor maps, and scalars: int is an int, float a float; NumPy scalars are what they are.
            shared_mem: dynamic shared memory in bytes.
            cluster: blocks of a thread-block cluster, at most eight in all; the grid is a multiple of it.

        Raises DeviceError with the report where the kernel did what it may not.
        """
        copies = [(arg, self.device.asarray(arg)) for arg in args if isinstance(arg, np.ndarray) and _foreign(arg)]
        own = {id(given): copy for given, copy in copies}
        values = [_bytes_of(own.get(id(arg), arg)) for arg in args]
        sizes = (ctypes.c_uint32 * (len(values) + 1))(*(len(value) for value in values))
        # Parameters are read in place: 64-byte alignment, as a tensor map needs.
        room = ctypes.create_string_buffer(sum(len(value) + 128 for value in values) + 64)
        pointers = (ctypes.c_void_p * (len(values) + 1))()
        at = ctypes.addressof(room)
        for index, value in enumerate(values):
            at = (at + 63) // 64 * 64
            ctypes.memmove(at, value, len(value))
            pointers[index] = at
            at += len(value)
        error = ctypes.create_string_buffer(_ERROR_BYTES)
        launch = _Launch(
            grid=_three("grid", grid),
            block=_three("block", block),
            cluster=_three("cluster", cluster),
            smem_bytes=shared_mem,
            mode=MODES.index(self.device.mode),
            races=int(self.device.races),
            argument_count=len(values),
            favoured_warps=_ends(self.device.favoured_warps),
            starved_warps=_ends(self.device.starved_warps),
            seed=self.device.seed,
            argument_bytes=ctypes.addressof(sizes),
            arguments=ctypes.addressof(pointers),
            error=ctypes.cast(error, ctypes.c_char_p),
            error_bytes=_ERROR_BYTES,
        )
        failed = self._launch(ctypes.byref(launch))
        self.switches = launch.switches
        if failed:
            raise DeviceError(f"The emulator stopped {self.name}: {error.value.decode()}")
        for given, copy in copies:
            if given.flags.writeable:
                given[...] = copy


def _foreign(array: Array) -> bool:
    """True where an array does not lie in a buffer that a device made."""
    base: Any = array
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    owner = base.obj if isinstance(base, memoryview) else base
    return not isinstance(owner, ctypes.Array)


def _three(name: str, size: tuple[int, ...]) -> Any:
    if not isinstance(size, tuple):
        raise InputError(f"{name} is {size!r}; write it as a tuple of one to three sizes, such as ({size!r},).")
    if not 1 <= len(size) <= 3 or min(size) < 1:
        raise InputError(f"A launch has one to three positive dimensions, not {size}.")
    return (ctypes.c_uint32 * 3)(*(*size, 1, 1)[:3])


def _ends(warps: range) -> Any:
    return (ctypes.c_uint32 * 2)(warps.start, warps.stop)


def _bytes_of(arg: Any) -> bytes:
    if isinstance(arg, np.ndarray):
        return int(arg.ctypes.data).to_bytes(8, "little")
    if isinstance(arg, np.generic):
        return arg.tobytes()
    if isinstance(arg, int):
        return np.int32(arg).tobytes()
    if isinstance(arg, float):
        return np.float32(arg).tobytes()
    if isinstance(arg, TensorMap):
        raise InputError("A TensorMap is encoded for the device that reads it; pass tensor_map.emulated().")
    raise InputError(f"A kernel takes arrays, tensor maps and scalars, not a {type(arg).__name__}.")
