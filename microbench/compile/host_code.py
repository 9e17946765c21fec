"""How host kernels are compiled.

`compiled` is Numba with its disk cache in smscope's own folder. `provable` compiles anew in each process, some 0.1 s,
since Numba cannot show the machine code of what it loaded from its cache, and a contract (host_asm.py) needs it.
"""

from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from microbench import paths

# Fused multiply-add allowed, and nothing else that changes results.
FUSED = {"contract"}
# Sums may be reordered, so that a reduction can use all lanes.
REORDERED = {"contract", "reassoc", "nsz"}

Kernel = Callable[..., Any]


def compiled(fastmath: set[str] | bool = False) -> Callable[[Kernel], Kernel]:
    """A decorator: Numba, without the interpreter lock, kept on disk per source file and CPU model."""

    def decorate(function: Kernel) -> Kernel:
        # Numba picks the folder when it decorates; its own setting is put back, for it is the user's.
        config: Any = numba.config
        chosen, config.CACHE_DIR = config.CACHE_DIR, str(paths.cache() / "numba")
        try:
            return _jit(function, cache=True, fastmath=fastmath)
        finally:
            config.CACHE_DIR = chosen

    return decorate


def provable(fastmath: set[str] | bool = FUSED) -> Callable[[Kernel], Kernel]:
    """A decorator: as `compiled`, but anew in each process, so that its machine code can be read."""
    return lambda function: _jit(function, cache=False, fastmath=fastmath)


def _jit(function: Kernel, cache: bool, fastmath: set[str] | bool) -> Kernel:
    kernel: Kernel = numba.njit(nogil=True, cache=cache, fastmath=fastmath)(function)
    return kernel


def _load_word(typing: Any, address: Any) -> Any:
    """The 8 bytes at a raw address, both uint64: one load and no index arithmetic."""
    if address != types.uint64:
        return None

    def generate(_: Any, builder: Any, __: Any, args: Any) -> Any:
        word = ir.IntType(64)
        return builder.load(builder.inttoptr(args[0], word.as_pointer()), align=8)

    return types.uint64(types.uint64), generate


# Called from Numba code as load_word(address).
load_word: Any = intrinsic(_load_word)
