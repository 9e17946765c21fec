"""A thin ctypes front end of NVRTC: CUDA C++ to cubin without a driver, 12.x and 13.x side by side in one process.

CuPy's own compile appends -ftz=true, and the official bindings bind one major version; hence neither.
"""

import ctypes
import sys
from collections.abc import Iterator, Sequence
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p, create_string_buffer
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from microbench.errors import EnvironmentLacks
from microbench.machine import toolkit, tools

WHEELS = ("nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc-cu13", "nvidia-cuda-nvrtc")
LIBRARY = r"libnvrtc\.so\.\d+"
BESIDE = Path(sys.prefix) / "nvrtc"  # wheels unpacked, a folder a version: constraints/environment.sh fills it
SONAMES = ("libnvrtc.so.12", "libnvrtc.so.13")

# The only toolchain that reaches every architecture of the table, sm_70 to sm_121.
DEFAULT = "12.9"
REMEDY = tools.install((tools.NVRTC,))


@dataclass(frozen=True)
class Candidate:
    """A library that may be NVRTC: its path or soname, and the wheel's version ('' where it is no wheel)."""

    library: str
    version: str = ""


@dataclass(frozen=True)
class Outcome:
    """What one compile gave: the cubin, or None where NVRTC refused; the log in either case."""

    image: bytes | None
    log: str


def candidates() -> Iterator[Candidate]:
    """Every NVRTC of this machine: wheels, those beside them, what the loader finds, then installed toolkits."""
    for file, version in toolkit.wheel_files(WHEELS, LIBRARY):
        yield Candidate(str(file), version)
    for file in sorted(BESIDE.glob("*/nvidia/cuda_nvrtc/lib/libnvrtc.so.*")):
        yield Candidate(str(file), file.relative_to(BESIDE).parts[0])
    for soname in SONAMES:
        yield Candidate(soname)
    for root in toolkit.roots():
        for folder in ("lib64", "lib"):
            for soname in SONAMES:
                if (root / folder / soname).is_file():
                    yield Candidate(str(root / folder / soname))


def installed(requested: str) -> bool:
    """True where a wheel or library of the requested version (12.9) is here; a wheel is not even loaded for it."""
    for candidate in candidates():
        found = candidate.version or getattr(load(candidate), "version", "")
        if matches(found, requested):
            return True
    return False


def choose(requested: str, sm: int) -> "Nvrtc":
    """The requested NVRTC, else the newest that compiles for `sm` (70, 90, ...). Raises EnvironmentLacks."""
    others: list[Nvrtc] = []
    unable: list[str] = []
    for candidate in candidates():
        library = load(candidate)
        if library is None:
            continue
        if sm not in library.architectures:
            unable.append(library.version)
        elif matches(library.version, requested):
            return library
        else:
            others.append(library)
    if others:
        return max(others, key=lambda library: _numbers(library.version))
    found = f" (the newest is {max(unable, key=_numbers)})" if unable else ""
    raise EnvironmentLacks(
        f"No NVRTC on this machine compiles for sm_{sm}{found}; {tools.for_sass()} (90 MB, needs no driver)."
    )


def matches(version: str, requested: str) -> bool:
    """True where 12.9.86 is a 12.9."""
    return _numbers(version)[: len(_numbers(requested))] == _numbers(requested)


def uncached(version: str) -> tuple[str, ...]:
    """What makes this NVRTC compile, and not take the cubin from the driver's cache.

    It looks there from 12.9 on ("Caching" in NVRTC's guide), wherever it finds a driver, and a cubin that it finds has
    no log: nothing says what the kernel occupies, or that a wgmma was serialised. 12.8 refuses the option.
    """
    return ("--no-cache",) if _numbers(version)[:2] >= (12, 9) else ()


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


@lru_cache
def load(candidate: Candidate) -> "Nvrtc | None":
    """The library, or None where the loader does not know it."""
    try:
        # NVRTC opens its builtins by soname only; the 13.x wheel has no run path, so they must be there before.
        if "/" in candidate.library:
            for builtins in sorted(Path(candidate.library).parent.glob("libnvrtc-builtins.so.*")):
                ctypes.CDLL(str(builtins))
        return Nvrtc(ctypes.CDLL(candidate.library), candidate.version)
    except OSError:
        return None


class Nvrtc:
    """One loaded libnvrtc. `version` is '12.9.86' from a wheel, '12.9' from elsewhere. Safe to call from threads."""

    def __init__(self, library: ctypes.CDLL, wheel_version: str) -> None:
        """`wheel_version` is '' where the library is in no wheel."""
        self._library = library
        major, minor = c_int(), c_int()
        self._call("nvrtcVersion", byref(major), byref(minor))
        self.version = wheel_version or f"{major.value}.{minor.value}"

    @cached_property
    def architectures(self) -> frozenset[int]:
        """Compute capabilities as NVRTC counts them: 70 for sm_70."""
        count = c_int()
        self._call("nvrtcGetNumSupportedArchs", byref(count))
        numbers = (c_int * count.value)()
        self._call("nvrtcGetSupportedArchs", numbers)
        return frozenset(numbers)

    def compile(self, source: str, name: str, headers: Sequence[tuple[str, str]], flags: Sequence[str]) -> Outcome:
        """Compile `source`, now and not from a cache; `headers` are (name as included, text) and stay in memory."""
        program = c_void_p()
        names, texts = _strings([n for n, _ in headers]), _strings([text for _, text in headers])
        options = (*flags, *uncached(self.version))
        self._call("nvrtcCreateProgram", byref(program), source.encode(), name.encode(), len(headers), texts, names)
        try:
            status = self._library.nvrtcCompileProgram(program, len(options), _strings(options))
            log = self._read("nvrtcGetProgramLog", program).rstrip(b"\0").decode(errors="replace")
            return Outcome(None if status else self._read("nvrtcGetCUBIN", program), log)
        finally:
            self._library.nvrtcDestroyProgram(byref(program))

    def _read(self, getter: str, program: c_void_p) -> bytes:
        size = c_size_t()
        self._call(f"{getter}Size", program, byref(size))
        buffer = create_string_buffer(size.value)
        self._call(getter, program, buffer)
        return buffer.raw

    def _call(self, function: str, *arguments: object) -> None:
        status = getattr(self._library, function)(*arguments)
        if status:
            self._library.nvrtcGetErrorString.restype = c_char_p
            reason = self._library.nvrtcGetErrorString(status).decode()
            raise EnvironmentLacks(f"NVRTC's {function} failed ({reason}); install it again: {REMEDY}.")


def _strings(values: Sequence[str]) -> ctypes.Array[c_char_p]:
    return (c_char_p * len(values))(*[value.encode() for value in values])
