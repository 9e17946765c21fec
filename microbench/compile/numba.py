"""The second method's compiler: a Numba CUDA kernel to a cubin, without a GPU and without a driver.

Python to PTX by numba-cuda (libNVVM), PTX to a cubin by nvJitLink; from there on it is a cubin like NVRTC's: the same
cache, contracts and launch. A hit needs none of the three, so that a cache can be carried to where they do not install.
"""

import inspect
import json
import re
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from microbench import sass
from microbench.compile import Cubin, cache, cached
from microbench.compile.nvrtc import DEFAULT, matches
from microbench.errors import BuildError, DataError, EnvironmentLacks, SmscopeError
from microbench.machine import tools
from microbench.machine.arch import Arch
from microbench.paths import PACKAGE
from microbench.probe import Build, Probe, Twin
from microbench.sass import cubin

REMEDY = tools.install((tools.NUMBA_CUDA,))

# Counts up when the key or the entry changes its meaning.
_LAYOUT = 1
_SOURCES = tuple(PACKAGE / "compile" / name for name in ("numba.py", "numba_ptx.py"))
_OPTIONS = ("-O3", "-verbose")  # -verbose puts spills into the log
# Without it the driver's cache may give the cubin, and then there is no log. nvJitLink 12.4 refuses the option.
_NO_CACHE = "-no-cache"
_NO_CACHE_SINCE = (12, 6)

_ENTRY = re.compile(r"\.entry\s+(\w+)")
# Numba's pointer to its Python environment: no kernel of ours reads it, and its name holds a counter.
_ENVIRONMENT = re.compile(r"^\.common \.global [^\n]*NumbaEnv[^\n]*\n", re.MULTILINE)
_ADDRESS_SIZE = ".address_size 64\n"


Made = tuple[Probe, Build]


def compile_twin(probe: Probe, build: Build, arch: Arch) -> Cubin:
    """The Numba kernel of one build of a probe, from the cache or compiled: compile_probe of the second method.

    Cubin.nvrtc holds the toolkit that numba-cuda compiled with (nvJitLink's version). Raises BuildError where the
    kernel does not compile, EnvironmentLacks where numba-cuda or its toolkit is needed and absent, DataError.
    """
    (made,) = compile_twins(((probe, build),), arch)
    if isinstance(made, SmscopeError):
        raise made
    return made


def compile_twins(todo: Sequence[Made], arch: Arch) -> tuple[Cubin | SmscopeError, ...]:
    """Every kernel compiled, or taken from the cache; in its place the error where one cannot be.

    One nvdisasm reads all that is new, as in compile_all.
    """
    made: dict[int, Cubin | SmscopeError] = {}
    fresh: list[tuple[int, str, bytes, cache.Entry]] = []
    for at, (probe, build) in enumerate(todo):
        try:
            key, kept = _kept(probe, build, arch)
            if kept is None:
                fresh.append((at, key, *build_image(_twin(probe), build, _name(probe, build), arch)))
            else:
                made[at] = _cubin(probe, build, arch, *kept, from_cache=True)
        except SmscopeError as error:
            made[at] = error
    try:
        codes = [cubin.text(image, _name(*todo[at])).code for at, _, image, _ in fresh]
        for (at, key, image, entry), listing in zip(fresh, sass.disassemble_all(codes, arch), strict=True):
            whole = entry.model_copy(update={"listing": listing})
            cache.write(key, image, whole)
            made[at] = _cubin(*todo[at], arch, image, whole, from_cache=False)
    except SmscopeError as error:
        made.update({at: error for at, *_ in fresh if at not in made})
    return tuple(made[at] for at in range(len(todo)))


def is_kept(probe: Probe, build: Build, arch: Arch) -> bool:
    """True where the cache holds this kernel, so that no compiler is needed. Raises BuildError, DataError."""
    return _kept(probe, build, arch)[1] is not None


def _twin(probe: Probe) -> Twin:
    if probe.twin is None:
        raise BuildError(f"{probe.name} has no Numba kernel; measure it by the method nvrtc.")
    return probe.twin


def _name(probe: Probe, build: Build) -> str:
    return build.kernel or probe.name


def _kept(probe: Probe, build: Build, arch: Arch) -> tuple[str, tuple[bytes, cache.Entry] | None]:
    """(key, what the cache holds of it that still counts)."""
    key = _key(_twin(probe), _name(probe, build), _flags(build, arch))
    kept = cache.read(key)
    return key, None if kept is not None and _outdated(kept[1]) else kept


def _cubin(probe: Probe, build: Build, arch: Arch, image: bytes, entry: cache.Entry, from_cache: bool) -> Cubin:
    return cached(image, entry, arch, _name(probe, build), DEFAULT, _flags(build, arch), from_cache)


def _outdated(entry: cache.Entry) -> bool:
    """True where another toolkit stood in when this was compiled, and the requested one is here now."""
    return not matches(entry.nvrtc, DEFAULT) and matches(_linker_version(), DEFAULT)


def _flags(build: Build, arch: Arch) -> tuple[str, ...]:
    """Options of nvJitLink, then the defines. Numba targets sm_90, not sm_90a: loads and clocks are the same."""
    major, minor = arch.compute_capability
    return (f"-arch=sm_{major}{minor}", *_OPTIONS, *(f"-D{key}={value}" for key, value in build.defines))


def _key(twin: Twin, name: str, flags: tuple[str, ...]) -> str:
    """Every text that decides the cubin, found without importing numba."""
    try:
        texts = [file.read_text() for file in (*_SOURCES, Path(inspect.getfile(twin.make)))]
    except OSError as error:
        raise DataError(f"The source of {name}'s Numba kernel cannot be read: {error.strerror}.") from error
    parts = [_LAYOUT, DEFAULT, flags, name, twin.make.__qualname__, twin.signature, texts]
    return cache.digest(json.dumps(parts).encode())


def build_image(twin: Twin, build: Build, name: str, arch: Arch) -> tuple[bytes, cache.Entry]:
    """(image, its entry, which has no listing yet). Raises BuildError, EnvironmentLacks."""
    started = time.perf_counter()
    image, log = _link(_ptx(twin, build, name, arch), name, arch, _flags(build, arch))
    seconds = time.perf_counter() - started
    used = cubin.resources(image, name, log)
    told = f"numba-cuda {metadata.version('numba-cuda')}, numba {metadata.version('numba')}\n{log}"
    return image, cache.entry_of(image, used, _linker_version(), told, "", seconds)


def _ptx(twin: Twin, build: Build, name: str, arch: Arch) -> str:
    """PTX with one entry, called `name`. Raises BuildError, EnvironmentLacks."""
    _require_numba_cuda()
    from cuda.pathfinder import DynamicLibNotFoundError
    from numba import cuda
    from numba.core.errors import NumbaError
    from numba.cuda.cudadrv.error import CCSupportError, NvvmError, NvvmSupportError

    try:
        kernel = twin.make(**{key.lower(): value for key, value in build.defines})
        ptx, _ = cuda.compile(
            kernel,
            twin.signature,
            cc=arch.compute_capability,
            device=False,
            abi="numba",
            launch_bounds=dict(build.defines).get("THREADS"),
        )
    except CCSupportError as error:
        raise EnvironmentLacks(
            f"numba-cuda uses CUDA {_linker_version()} here, which has no {arch.name}; {REMEDY}, whose 12.9 has it."
        ) from error
    except (DynamicLibNotFoundError, NvvmSupportError) as error:
        raise EnvironmentLacks(f"numba-cuda finds no libNVVM or NVRTC ({_first_line(error)}); {REMEDY}.") from error
    except (NumbaError, NvvmError) as error:
        refused = BuildError(f"Numba does not build {name} for {arch.name}: {_first_line(error)}")
        refused.add_note(str(error))
        raise refused from error
    found = _ENTRY.search(ptx)
    if found is None:
        raise BuildError(f"Numba's PTX of {name} for {arch.name} holds no kernel; its function must return nothing.")
    # Numba's own name holds a counter: the same kernel would have another cubin in every process.
    ptx = _ENVIRONMENT.sub("", ptx.replace(found[1], name))
    return ptx.replace(_ADDRESS_SIZE, _ADDRESS_SIZE + '.pragma "nounroll";\n', 1)


def _link(ptx: str, name: str, arch: Arch, flags: tuple[str, ...]) -> tuple[bytes, str]:
    """(cubin, log). Raises BuildError with ptxas' own words."""
    from cuda.bindings import nvjitlink

    options = [flag for flag in flags if not flag.startswith("-D")]
    options += [_NO_CACHE] if nvjitlink.version() >= _NO_CACHE_SINCE else []
    handle = nvjitlink.create(len(options), options)
    try:
        text = ptx.encode()
        nvjitlink.add_data(handle, nvjitlink.InputType.PTX, text, len(text), name)
        nvjitlink.complete(handle)
        image = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, image)
        return bytes(image), _log(nvjitlink.get_info_log_size, nvjitlink.get_info_log, handle)
    except nvjitlink.nvJitLinkError as error:
        log = _log(nvjitlink.get_error_log_size, nvjitlink.get_error_log, handle)
        reason = next(iter(log.strip().splitlines()), str(error))
        refused = BuildError(f"nvJitLink does not build {name} for {arch.name}: {reason}")
        refused.add_note(log)
        raise refused from error
    finally:
        nvjitlink.destroy(handle)


def _log(size: Callable[[int], int], read: Callable[[int, bytearray], Any], handle: int) -> str:
    buffer = bytearray(size(handle))
    if buffer:
        read(handle, buffer)
    return buffer.rstrip(b"\0").decode(errors="replace")


def _first_line(error: Exception) -> str:
    """The cause in one line: Numba's first line names a stage of its pipeline, the next one the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.startswith("Failed in")]
    return next(iter(lines), type(error).__name__)


def _require_numba_cuda() -> None:
    """Raise EnvironmentLacks, with what to install, unless a compile can work."""
    if not _linker_version():
        raise EnvironmentLacks(
            f"The Numba kernels of the second method cannot be compiled: numba-cuda or the nvJitLink that it needs is "
            f"absent; {REMEDY} (no driver needed)."
        )


def _linker_version() -> str:
    """The version of the nvJitLink that numba-cuda's bindings load ('12.9'), '' where one of them is absent."""
    try:
        metadata.version("numba-cuda")
        from cuda.bindings import nvjitlink

        major, minor = nvjitlink.version()
    except Exception:  # a package, a library or a symbol is absent: each loader has its own error for that
        return ""
    return f"{major}.{minor}"
