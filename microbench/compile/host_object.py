"""Machine code of host functions, kept on disk: Numba compiles once, and later processes load it with llvmlite alone.

Numba has a cache of its own, but importing Numba and its target costs most of a second; this loads in some 30 ms, and
whether code is there is a question to the file system. A file <key>.o is a digest line, the symbol's line, the object.
"""

import ctypes
import ctypes.util
import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from microbench import files, paths

# What compiled loops may call beyond themselves.
EXTERNAL = ("memset", "memcpy", "memmove", "log", "logf")
_engines: list[Any] = []  # code lives as long as its engine


def cpu() -> tuple[str, str]:
    """The CPU and its features that code is made for: this one's, or what NUMBA_CPU_NAME and NUMBA_CPU_FEATURES say."""
    features = os.environ.get("NUMBA_CPU_FEATURES")
    if features is None:
        features = llvm.get_host_cpu_features().flatten()
    return os.environ.get("NUMBA_CPU_NAME") or llvm.get_host_cpu_name(), features


def compiled(function: Callable[..., None], signature: Any) -> tuple[str, bytes]:
    """(symbol, object) of a function without Python objects. Takes seconds, and imports Numba."""
    import numba

    options = {"nogil": True, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    kernel: Any = numba.njit(signature, **options)(function)
    module = llvm.parse_assembly(kernel.inspect_llvm(kernel.signatures[0]))
    whole = [each for each in module.functions if not each.is_declaration and each.linkage == llvm.Linkage.external]
    return whole[0].name, _machine().emit_object(module)


def load(symbol: str, code: bytes) -> int:
    """The address of a function in this process. Raises OSError where the C library lacks what it calls."""
    if not all(llvm.address_of_symbol(name) for name in EXTERNAL):
        llvm.load_library_permanently(ctypes.util.find_library("m") or "")
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)
    return int(engine.get_function_address(symbol))


def is_kept(key: str) -> bool:
    return _path(key).is_file()


def read(key: str) -> tuple[str, bytes] | None:
    """(symbol, object), or None where nothing whole lies there."""
    with suppress(OSError, ValueError):
        digest, _, body = _path(key).read_bytes().partition(b"\n")
        if digest.decode() == hashlib.sha256(body).hexdigest():
            symbol, _, code = body.partition(b"\n")
            return symbol.decode(), code
    return None


def keep(key: str, symbol: str, code: bytes) -> None:
    """Write code for later processes, whole or not at all; where nothing can be written, they compile again."""
    body = symbol.encode() + b"\n" + code
    with suppress(OSError):
        folder = _path(key).parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # what lies here is run
        files.put(_path(key), hashlib.sha256(body).hexdigest().encode() + b"\n" + body, mode=0o600)


def _path(key: str) -> Path:
    return paths.cache() / "host" / f"{key}.o"


def _machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    name, features = cpu()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=name, features=features, opt=3, codemodel="jitdefault", jit=True)
