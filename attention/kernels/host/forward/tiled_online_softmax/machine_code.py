"""The compiled kernel, loaded from disk, or compiled and kept there: once per source, CPU, and Numba."""

import ctypes
import hashlib
from collections.abc import Callable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from attention.errors import LaunchError
from microbench.compile import host_object

BITS = (32, 64)  # of an element that is computed with
Draw = Callable[[int, int, int, float], None]  # addresses of the fields, the counter and scratch memory; the scale


def is_kept() -> bool:
    """Whether the next process, or this one, can do without compiling."""
    return all(host_object.is_kept(_key(bits)) for bits in BITS)


def keep() -> None:
    """Compile what is not kept, in some seconds."""
    for bits in BITS:
        _code(bits)


@cache
def entry(bits: int) -> Draw:
    """tiles.draw for elements of so many bits. It holds no lock of Python's while it runs."""
    element = ctypes.c_float if bits == 32 else ctypes.c_double
    addresses = (ctypes.c_void_p,) * 2 + (ctypes.c_int64,) * 3
    address = host_object.load(*_code(bits))
    native = ctypes.CFUNCTYPE(ctypes.c_int32, *addresses, ctypes.c_double, element)(address)

    def draw(fields: int, counter: int, memory: int, scale: float) -> None:
        unread = (ctypes.c_void_p * 2)()  # Numba's convention: where a result and the cause of a failure would go
        place = ctypes.addressof(unread)
        if native(place, place + ctypes.sizeof(ctypes.c_void_p), fields, counter, memory, scale, 0.0):
            raise LaunchError("The CPU kernel refused its tile sizes, which is a fault of smscope; please report it.")

    return draw


def _code(bits: int) -> tuple[str, bytes]:
    kept = host_object.read(_key(bits))
    if kept is None:
        kept = host_object.compiled(*_source(bits))
        host_object.keep(_key(bits), *kept)
    return kept


def _source(bits: int) -> tuple[Callable[..., None], Any]:
    from numba import types

    from attention.kernels.host.forward.tiled_online_softmax.tiles import draw

    element = types.float32 if bits == 32 else types.float64
    return draw, types.void(types.CPointer(types.intp), types.intp, types.intp, types.float64, element)


@cache
def _key(bits: int) -> str:
    sources = b"".join(file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py")))
    versions = (metadata.version("numba"), metadata.version("llvmlite"))
    made_for = repr((bits, versions, host_object.cpu())).encode()
    return hashlib.sha256(sources + made_for).hexdigest()
