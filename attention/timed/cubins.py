"""The file boundary of what our kernels compile to: cubins/<kernel>.jsonl, one build a line.

A timing is of a cubin. These files say, without a compiler, whether it is still this tree's: a line counts while the
kernel's text is the one that was compiled. They are derived: where a text has changed `smscope profile` compiles what
was timed once more. A build whose machine code comes out the same is the same kernel, whatever the constants beside it
are called, and so are the cubins that another compiler had made of it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from attention.errors import AttentionError
from attention.kernels.launch.source import source_of
from attention.timed.identity import text_sha256
from attention.timed.named import config_of
from attention.timed.observed import Observed
from attention.timed.timing import Timing
from attention.variant import CudaBuild, Variant, by_path
from microbench import files, paths
from microbench.compile import Cubin, Defines, compile_all
from microbench.compile.nvrtc import DEFAULT, installed
from microbench.console.progress import watching
from microbench.errors import DataError
from microbench.files import Frozen, append
from microbench.machine.arch import Arch

FOLDER, BESIDE = "cubins", "beside-"
AS_FAST = 1.01


class Compiled(Frozen):
    """One build of a kernel: what was asked of which compiler, and what came of it."""

    schema_version: Literal[1] = 1
    variant: str
    arch: str
    kernel: str
    defines: tuple[tuple[str, int | str], ...]
    nvrtc: str | None = None  # None: the compiler of the machine that timed it, or of an earlier text
    text_sha256: str
    cubin_sha256: str
    code_sha256: str | None = None  # microbench.compile.Cubin's; None: nobody compiled it here

    @property
    def is_of_the_projects_compiler(self) -> bool:
        """Whether it can be compiled again wherever the project is, and not by the compiler of some machine alone."""
        return self.nvrtc is not None and self.nvrtc.startswith(DEFAULT)

    @property
    def build(self) -> "Build":
        return build_of(self.arch, self.kernel, self.defines)


Build = tuple[str, str, frozenset[tuple[str, int | str]]]


def build_of(arch: str, kernel: str, defines: Defines) -> Build:
    """What tells one build of a kernel from another: a switch that is off is as one that nobody had thought of."""
    return arch, kernel, frozenset((name, value) for name, value in defines if value != 0)


def current(variant: Variant) -> frozenset[str]:
    """The cubins that are known to be this tree's."""
    return frozenset(builds_of(variant))


def builds_of(variant: Variant) -> Mapping[str, frozenset[Build]]:
    """What was asked of a compiler that made them: of one cubin several builds, where a switch changes nothing."""
    found: dict[str, set[Build]] = {}
    for each in _of_this_text(variant):
        found.setdefault(each.cubin_sha256, set()).add(each.build)
    return {cubin: frozenset(builds) for cubin, builds in found.items()}


def is_of_todays_builds(timing: Observed, arch: str, builds: Mapping[str, frozenset[Build]]) -> bool:
    """Whether its cubins are what this tree launches for its problem and configuration.

    A cubin may be of today's text, and a problem's another one by now: a rule that was settled anew says so.
    """
    steps = asked(timing)
    return bool(steps) and all(
        build_of(arch, step.kernel, step.defines) in builds[cubin]
        for step, cubin in zip(steps, timing.cubins, strict=True)
    )


def renew(arch: Arch, timings: Iterable[Timing]) -> None:
    """Bring the files up to date with what was timed on an architecture. Raises DataError.

    Where the NVRTC of the project is not at hand, another one's cubins would tell nothing: then nothing is compiled.
    """
    timed: dict[str, dict[Build, _Timed]] = {}
    for timing in timings:
        for step, cubin in zip(asked(timing), timing.cubins, strict=False):
            builds = timed.setdefault(timing.variant, {})
            build = builds.setdefault(build_of(arch.name, step.kernel, step.defines), _Timed(step))
            build.ran.append((timing.source_sha256, cubin))
    for path, builds in timed.items():
        variant = by_path(path)
        text, on_file = text_sha256(path), set(read(variant))
        # Another GPU of the architecture may have timed builds that this one has not: its turn comes.
        lines = {line for line in on_file if line.text_sha256 == text or line.build not in builds}
        known = {(line.build, line.cubin_sha256) for line in lines}
        lines |= {
            _line(variant, arch, found.asked, text, sha256)
            for build, found in builds.items()
            for sha256 in found.cubins_of(text)
            if (build, sha256) not in known
        }
        compiled = {line.build for line in lines if line.is_of_the_projects_compiler}
        missing = [found.asked for build, found in builds.items() if build not in compiled]
        for fresh in _compiled(variant, arch, missing):
            told = {line for line in lines if (line.build, line.cubin_sha256) == (fresh.build, fresh.cubin_sha256)}
            lines = (lines - told) | {fresh, *alike(fresh, on_file)}
        if lines != on_file:
            write(variant, lines)


class Beside(Frozen):
    """An old build and today's of one configuration, timed in turns on one problem (attention.compare.beside)."""

    schema_version: Literal[1] = 1
    gpu: str
    run: str
    variant: str
    problem: str
    config: dict[str, int]
    old_code_sha256: str
    new_code_sha256: str
    old_seconds: float
    new_seconds: float
    n: int
    clock_mhz: float
    flags: tuple[str, ...] = ()

    @property
    def as_fast(self) -> bool:
        return self.new_seconds <= AS_FAST * self.old_seconds


def write_beside(row: Beside) -> None:
    """Append to the file of its GPU. Raises DataError."""
    append(paths.writable_data() / FOLDER / f"{BESIDE}{row.gpu}.jsonl", row)


def _as_fast(code: str | None) -> set[str | None]:
    """The codes of earlier texts whose timings go on: today's takes at most 1 % longer."""
    files = {file.name: file for root in paths.data_roots() for file in (root / FOLDER).glob(f"{BESIDE}*.jsonl")}
    found = (Beside.model_validate_json(line) for file in files.values() for line in file.read_text().splitlines())
    return {row.old_code_sha256 for row in found if row.new_code_sha256 == code and row.as_fast}


@dataclass
class _Timed:
    """A build, and the text and cubin of each timing of it."""

    asked: CudaBuild
    ran: list[tuple[str, str]] = field(default_factory=list)

    def cubins_of(self, text: str) -> set[str]:
        """What ran where this text was timed, whoever compiled it."""
        return {cubin for timed, cubin in self.ran if timed == text}


def alike(fresh: Compiled, on_file: set[Compiled]) -> Iterator[Compiled]:
    """The cubins of earlier texts of a build from which the same compiler makes what it makes of today's."""
    build = fresh.build
    of_build = [line for line in on_file if line.build == build]
    same = {fresh.code_sha256, fresh.cubin_sha256} | _as_fast(fresh.code_sha256)
    texts = {line.text_sha256 for line in of_build if {line.code_sha256, line.cubin_sha256} & same}
    for line in of_build:
        if line.text_sha256 in texts and line.cubin_sha256 != fresh.cubin_sha256:
            told = {"nvrtc": None, "code_sha256": line.code_sha256, "cubin_sha256": line.cubin_sha256}
            yield fresh.model_copy(update=told)


def place_of(variant: Variant) -> Path:
    """Where a kernel's file is written."""
    return paths.writable_data() / FOLDER / f"{variant.path.replace('/', '-')}.jsonl"


def faults(variant: Variant) -> tuple[str, ...]:
    """What is wrong with what is on file of a kernel that was timed."""
    found: list[str] = []
    for number, line in enumerate(bytes_of(variant).splitlines(), start=1):
        try:
            Compiled.model_validate_json(line)
        except ValidationError:
            found.append(f"line {number}: no build of a kernel")
    if not current(variant):
        again = f"`{paths.typed('profile')}` compiles them again"
        found.append(
            f"it names no cubin of {variant.path} as it is now, so that older timings of it do not count; {again}"
        )
    return tuple(found)


def bytes_of(variant: Variant) -> bytes:
    """All that is on file of a kernel."""
    found = b""
    for root in paths.data_roots():
        with suppress(OSError):
            found += (root / FOLDER / place_of(variant).name).read_bytes()
    return found


def read(variant: Variant) -> Iterator[Compiled]:
    """Every line on file, of this text or another; one that cannot be read counts for nothing."""
    for line in bytes_of(variant).splitlines():
        with suppress(ValidationError):
            yield Compiled.model_validate_json(line)


def _of_this_text(variant: Variant) -> Iterator[Compiled]:
    text = text_sha256(variant.path)
    return (each for each in read(variant) if each.text_sha256 == text)


def asked(timing: Timing | Observed) -> tuple[CudaBuild, ...]:
    """The steps that a timing was of, where today's kernel has such a configuration, of as many steps."""
    try:
        variant = by_path(timing.variant)
        config = config_of(variant, timing.problem, timing.config)
        steps = variant.steps(timing.problem, config)
    except (AttentionError, KeyError, ValueError):
        return ()
    return steps if len(steps) == len(timing.cubins) else ()


def _compiled(variant: Variant, arch: Arch, builds: Sequence[CudaBuild]) -> Iterator[Compiled]:
    if not builds or not installed(DEFAULT):
        return
    with watching(len(builds)) as watcher:
        for build in builds:
            watcher.doing(variant.name, "compiling what was timed")
            (cubin,) = compile_all([source_of(variant.folder, build, arch)])
            watcher.finished()
            if isinstance(cubin, Cubin):
                yield line_of(variant, arch, build, cubin)


def line_of(variant: Variant, arch: Arch, build: CudaBuild, cubin: Cubin) -> Compiled:
    """What came of a build of today's text, compiled here."""
    line = _line(variant, arch, build, text_sha256(variant.path), cubin.sha256)
    return line.model_copy(update={"nvrtc": cubin.nvrtc, "code_sha256": cubin.code_sha256})


def _line(variant: Variant, arch: Arch, build: CudaBuild, text: str, cubin: str) -> Compiled:
    return Compiled(
        variant=variant.path,
        arch=arch.name,
        kernel=build.kernel,
        defines=build.defines,
        text_sha256=text,
        cubin_sha256=cubin,
    )


def write(variant: Variant, rows: Iterable[Compiled]) -> Path:
    """All that is on file of a kernel. Raises DataError."""
    path = place_of(variant)
    lines = sorted(row.model_dump_json(exclude_defaults=True) for row in rows)
    try:
        files.put(path, "\n".join(lines) + "\n")
    except OSError as error:
        raise DataError(f"Could not write {path.name}: {error.strerror}{paths.moved(path)}.") from error
    return path
