"""CUDA C++ to a cubin that carries its proof: NVRTC's log, the resources, and the SASS. No GPU and no driver needed.

What is verified is what is measured: the cache key holds the requested toolchain, the flags and every line of source,
so a hit is the cubin that was checked, on machines without NVRTC as well.
"""

import json
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

from microbench import sass
from microbench.compile import cache
from microbench.compile.nvrtc import DEFAULT, choose, installed, matches
from microbench.errors import BuildError, DataError, SmscopeError
from microbench.machine.arch import Arch, by_name
from microbench.paths import PACKAGE
from microbench.probe import Build, Probe
from microbench.sass import cubin
from microbench.sass.cubin import Resources
from microbench.sass.instruction import Instruction

HEADERS = PACKAGE / "cuda"
Defines = tuple[tuple[str, int | str], ...]

# No fast-math and no -ftz: an instruction probe measures what its source says. -v puts spills into the log.
_FLAGS = ("--std=c++17", "-default-device", "--ptxas-options=-v")

# Counts up when the key or the entry changes its meaning.
_LAYOUT = 1

# ptxas goes on after these, with other code than the source asks for: setmaxnreg ignored (C7508), wgmma serialised
# (C7509 to C7516, C7518; C7512 for want of registers), a wgmma wait injected (C7517).
_FATAL_NOTE = re.compile(r"[^\n]*\(C75(?:0[89]|1[0-8])\)[^\n]*")
_NOTE = re.compile(r"\((C7\d{3})\)")
_ERROR = re.compile(r"[^\n]*\berror\b[^\n]*", re.IGNORECASE)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.MULTILINE)


@dataclass(frozen=True)
class Cubin:
    """One compiled kernel. `path` is the image in the cache, for cupy.RawModule(path=...)."""

    image: bytes
    sha256: str
    arch: str
    kernel: str
    nvrtc: str  # the one that compiled it: '12.9.86' from a wheel, '12.9' from elsewhere
    requested_nvrtc: str
    flags: tuple[str, ...]
    log: str
    resources: Resources
    listing: str  # nvdisasm's, one instruction a line
    compile_seconds: float  # what it took when it was compiled
    path: Path
    from_cache: bool

    @property
    def other_toolchain(self) -> bool:
        """True where the requested NVRTC was absent and another one compiled: a record says so."""
        return not matches(self.nvrtc, self.requested_nvrtc)

    @property
    def notes(self) -> tuple[str, ...]:
        """The numbers of ptxas' notes on the code that it makes, each once: none is fatal, or there were no cubin."""
        return tuple(sorted(set(_NOTE.findall(self.log))))

    @cached_property
    def code_sha256(self) -> str:
        """Of what runs: machine code, and what a block of it occupies. The names of constants are not in it."""
        used = self.resources
        occupied = repr((used.registers, used.smem_bytes, used.local_bytes, used.barriers))
        return cache.digest(cubin.text(self.image, self.kernel).code + occupied.encode())

    def instructions(self) -> tuple[Instruction, ...]:
        return sass.parse(self.image, self.kernel, self.listing)


@dataclass(frozen=True)
class Source:
    """What decides a cubin. Includes are written from the root of an `include` folder ("ptx/clock.cuh").

    `nvrtc` pins a toolchain ('13.2'); where it is absent another one compiles, and Cubin.other_toolchain says so.
    `generated` are headers that lie in no folder: name as included, and text.
    """

    text: str
    name: str
    arch: Arch
    kernel: str
    defines: Defines = ()
    include: tuple[Path, ...] = (HEADERS,)
    nvrtc: str = DEFAULT
    generated: tuple[tuple[str, str], ...] = ()

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """(name as included, text) of every header that the source reaches."""
        return _headers(self.text, self.include, dict(self.generated))

    @property
    def flags(self) -> tuple[str, ...]:
        return (f"-arch={self.arch.nvrtc}", *_FLAGS, *(f"-D{key}={value}" for key, value in self.defines))


def source_of(probe: Probe, build: Build, arch: Arch) -> Source:
    """The source of one build of a probe. Raises DataError where its file cannot be read."""
    try:
        text = probe.source.read_text()
    except OSError as error:
        raise DataError(f"The source {probe.source.name} of {probe.name} cannot be read: {error.strerror}.") from error
    return Source(text, probe.source.name, arch, build.kernel or probe.name, build.defines)


def compile_probe(probe: Probe, build: Build, arch: Arch) -> Cubin:
    """The kernel of one build of a probe. Raises BuildError, EnvironmentLacks, DataError.

    The contract is not checked here: sass.require(build.contract, cubin.instructions(), arch, cubin.resources).
    """
    return require_all([source_of(probe, build, arch)])[0]


def compile_source(
    source: str,
    name: str,
    arch: Arch | str,
    defines: Defines = (),
    include: tuple[Path, ...] = (HEADERS,),
    *,
    kernel: str,
    nvrtc: str | None = None,
) -> Cubin:
    """Compile `source`, or take it from the cache; the arguments are those of Source.

    Raises BuildError where NVRTC refuses the source or the log holds a fatal note, EnvironmentLacks where NVRTC or
    nvdisasm is needed and absent, DataError where the cache cannot be written.
    """
    arch = by_name(arch) if isinstance(arch, str) else arch
    return require_all([Source(source, name, arch, kernel, defines, include, nvrtc or DEFAULT)])[0]


def require_all(sources: Iterable[Source]) -> tuple[Cubin, ...]:
    """Every source compiled, or taken from the cache, each once. Raises the first error."""
    cubins = []
    for made in compile_all(tuple(dict.fromkeys(sources))):
        if isinstance(made, SmscopeError):
            raise made
        cubins.append(made)
    return tuple(cubins)


def compile_all(sources: Sequence[Source]) -> tuple[Cubin | SmscopeError, ...]:
    """Every source compiled, or taken from the cache; in its place the error where one cannot be.

    One nvdisasm reads what is new of each architecture: starting it takes longer than compiling a small kernel.
    """
    made: dict[int, Cubin | SmscopeError] = {}
    fresh: dict[Arch, list[tuple[int, str, bytes, cache.Entry]]] = {}
    for at, source in enumerate(sources):
        try:
            key = _key(source, source.headers)
            kept = cache.read(key)
            if kept is not None and not _outdated(kept[1], source.nvrtc):
                made[at] = _cubin(source, *kept, from_cache=True)
            else:
                fresh.setdefault(source.arch, []).append((at, key, *_compile(source)))
        except SmscopeError as error:
            made[at] = error
    for arch, compiled in fresh.items():
        try:
            codes = [cubin.text(image, sources[at].kernel).code for at, _, image, _ in compiled]
            for (at, key, image, entry), listing in zip(compiled, sass.disassemble_all(codes, arch), strict=True):
                whole = entry.model_copy(update={"listing": listing})
                cache.write(key, image, whole)
                made[at] = _cubin(sources[at], image, whole, from_cache=False)
        except SmscopeError as error:
            made.update({at: error for at, *_ in compiled if at not in made})
    return tuple(made[at] for at in range(len(sources)))


def is_kept(source: Source) -> bool:
    """True where the cache holds the cubin of this source, so that no compiler is needed. Raises DataError."""
    kept = cache.read(_key(source, source.headers))
    return kept is not None and not _outdated(kept[1], source.nvrtc)


def _cubin(source: Source, image: bytes, entry: cache.Entry, from_cache: bool) -> Cubin:
    return cached(image, entry, source.arch, source.kernel, source.nvrtc, source.flags, from_cache)


def cached(
    image: bytes, entry: cache.Entry, arch: Arch, kernel: str, requested: str, flags: tuple[str, ...], from_cache: bool
) -> Cubin:
    """A Cubin from what the cache keeps of it; the second method's cubins are made by it too."""
    return Cubin(
        image=image,
        sha256=entry.sha256,
        arch=arch.name,
        kernel=kernel,
        nvrtc=entry.nvrtc,
        requested_nvrtc=requested,
        flags=flags,
        log=entry.log,
        resources=Resources(**{field.name: getattr(entry, field.name) for field in fields(Resources)}),
        listing=entry.listing,
        compile_seconds=entry.compile_seconds,
        path=cache.image_path(entry.sha256),
        from_cache=from_cache,
    )


def _compile(source: Source) -> tuple[bytes, cache.Entry]:
    if "cuda" not in source.arch.features:
        raise BuildError(
            f"{source.name} is CUDA code, and {source.arch.name} is no GPU; the host lane compiles nothing."
        )
    major, minor = source.arch.compute_capability
    compiler = choose(source.nvrtc, major * 10 + minor)
    started = time.perf_counter()
    outcome = compiler.compile(source.text, source.name, source.headers, source.flags)
    seconds = time.perf_counter() - started
    fatal = _FATAL_NOTE.search(outcome.log) if outcome.image else _ERROR.search(outcome.log)
    if outcome.image is None or fatal:
        reason = fatal[0].strip() if fatal else "no reason given"
        error = BuildError(f"NVRTC {compiler.version} does not build {source.name} for {source.arch.name}: {reason}")
        error.add_note(outcome.log)
        raise error
    used = cubin.resources(outcome.image, source.kernel, outcome.log)
    return outcome.image, cache.entry_of(outcome.image, used, compiler.version, outcome.log, "", seconds)


def _outdated(entry: cache.Entry, requested: str) -> bool:
    """True where another NVRTC stood in when this was compiled, and the requested one has been installed since."""
    return not matches(entry.nvrtc, requested) and installed(requested)


def _key(source: Source, headers: tuple[tuple[str, str], ...]) -> str:
    """Every text that decides the cubin; the architecture and the defines are among the flags."""
    decides = [_LAYOUT, source.nvrtc, source.flags, source.name, source.text, headers, source.kernel]
    return cache.digest(json.dumps(decides).encode())


def _headers(source: str, roots: tuple[Path, ...], generated: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """(name as included, text) of every header that `source` reaches, in order of name.

    A name that no root holds is left for NVRTC to complain about, with its line.
    """
    found: dict[str, str] = {}
    waiting = [source]
    while waiting:
        for name in _INCLUDE.findall(waiting.pop()):
            if name in found:
                continue
            text = generated.get(name)
            if text is None:
                file = next((root / name for root in roots if (root / name).is_file()), None)
                text = None if file is None else file.read_text()
            if text is not None:
                found[name] = text
                waiting.append(text)
    return tuple(sorted(found.items()))
