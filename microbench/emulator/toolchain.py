"""The C++ compiler of the emulator, and its shared libraries in the cache.

A library ends with the SHA-256 of what comes before, which no loader reads. Whatever does not match counts as absent:
to load half of one would end the process.
"""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from microbench import paths
from microbench.errors import BuildError, DataError, EnvironmentLacks

HERE = Path(__file__).resolve().parent
INCLUDES = (paths.PACKAGE, paths.PACKAGE / "cuda")
# -O2 with the loops of the tensor cores vectorised. -fno-strict-aliasing: kernels read one memory as many types.
_FLAGS = ("-std=c++17", "-O2", "-ftree-vectorize", "-fPIC", "-fno-strict-aliasing", "-Wno-unknown-pragmas")
_AVX2 = "-march=x86-64-v3"
# Hidden: statics of inline functions would be one for all libraries of the process (STB_GNU_UNIQUE). Stack clash: a
# frame larger than the guard page below a stack touches that page all the same.
_KERNEL_FLAGS = (
    *("-fvisibility-inlines-hidden", "-fstack-clash-protection"),
    *("-DSMSCOPE_EMULATED", "-include", "emulator/builtins.hpp"),
)
# Calls of the emulator's own __tsan_ functions at plain accesses (runtime/global_races.cpp): only to compile with, for
# the linker would add the sanitizer's library.
_WATCHED = "-fsanitize=thread"
_WATCHED_BY = {
    "g++": ("--param=tsan-instrument-func-entry-exit=0", "--param=tsan-distinguish-volatile=1"),
    "clang++": ("-mllvm", "-tsan-instrument-func-entry-exit=0", "-mllvm", "-tsan-distinguish-volatile=1"),
}
# What the loader says of a kernel whose machine lay in a folder that somebody has cleared since.
MACHINE_IS_GONE = "cannot open shared object file"
# What the compiler says of CUDA that has no second body here, and what to write instead. The assembler's own errors
# begin with a capital.
_HINTS = (
    (
        re.compile(r"\basm\b|(in|out)put constraint|: Error: "),
        "inline PTX has no meaning on a CPU: call a wrapper of microbench/cuda/ptx",
    ),
    (re.compile(r"__shared__"), "shared memory is dynamic and begins at ptx::shared_base(), of ptx/memory.cuh"),
)


@cache
def compiler() -> str:
    """Path of g++ or clang++. Raises EnvironmentLacks where this machine cannot run the emulator."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise EnvironmentLacks("The emulator switches stacks by hand and runs on x86-64 Linux only.")
    found = shutil.which("g++") or shutil.which("clang++")
    if found is None:
        raise EnvironmentLacks("The emulator needs a C++ compiler, and neither g++ nor clang++ is here; install one.")
    return found


@cache
def _identity() -> tuple[str, ...]:
    """What decides the code beside the source: the compiler's version and the flags for this CPU."""
    version = subprocess.run([compiler(), "--version"], capture_output=True, text=True, check=True).stdout
    cpu = Path("/proc/cpuinfo").read_text()
    target = (_AVX2,) if " avx2 " in cpu and " f16c " in cpu else ()
    return (version.splitlines()[0], *_FLAGS, *target)


def _flags() -> list[str]:
    return [*_identity()[1:], *(f"-I{folder}" for folder in INCLUDES)]


def _digest(*texts: str | bytes) -> str:
    hashed = hashlib.sha256()
    for text in texts:
        data = text.encode() if isinstance(text, str) else text
        hashed.update(len(data).to_bytes(8, "little") + data)
    return hashed.hexdigest()


def runtime() -> Path:
    """The library of the machine itself: built once, some ten seconds. Raises EnvironmentLacks, BuildError."""
    return _runtime(_folder())


@cache  # of a folder: a kernel that is linked to the machine of another one is lost with that one
def _runtime(folder_of_cache: Path) -> Path:
    sources = sorted((HERE / "runtime").glob("*.cpp"))
    texts = [file.read_text() for file in [*sources, *sorted((HERE / "runtime").glob("*.hpp")), HERE / "api.hpp"]]
    library = folder_of_cache / f"runtime-{_digest(*_identity(), *texts)[:32]}.so"
    if not _whole(library):
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = [Path(folder) / f"{source.stem}.o" for source in sources]
            jobs = [
                pool.submit(_run, [compiler(), *_flags(), "-c", str(source), "-o", str(target)], source.name)
                for source, target in zip(sources, objects, strict=True)
            ]
            for job in jobs:
                job.result()
            _link([compiler(), "-shared", *map(str, objects)], library, "the emulator")
    return library


def build_kernel(
    source: str,
    name: str,
    kernel: str,
    defines: Sequence[tuple[str, int | str]],
    include: Sequence[Path] = (),
    *,
    watched: bool = True,
) -> Path:
    """The library that launches `kernel`, from the cache where nothing changed. Raises BuildError.

    `watched`: plain accesses of global memory are reported to the runtime, for its report of races.
    """
    roots = (*INCLUDES[1:], HERE, *include)
    headers = [file.read_text() for root in roots for file in sorted(root.rglob("*.[ch][up][hp]"))]
    machine = runtime()
    words = [*_KERNEL_FLAGS, *(f"-D{key}={value}" for key, value in defines), *(f"-I{root}" for root in include)]
    if watched:
        words += [_WATCHED, *_WATCHED_BY[Path(compiler()).name]]
    library = _folder() / f"{_digest(*_identity(), machine.name, *words, kernel, name, source, *headers)[:32]}.so"
    if not _whole(library):
        with tempfile.TemporaryDirectory() as folder:
            text, made = Path(folder) / "kernel.cpp", Path(folder) / "kernel.o"
            text.write_text(
                f'#line 1 "{name}"\n{source}\nextern "C" int smscope_launch(emulator::Launch& launch) '
                f"{{ return emulator::Caller<&{kernel}>::launch(launch); }}\n"
            )
            # A folder of the caller comes before our own: it may change a wrapper.
            _run([compiler(), *words, *_flags(), "-c", str(text), "-o", str(made)], name)
            _link([compiler(), "-shared", str(made), str(machine)], library, name)
    return library


def _link(command: list[str], library: Path, name: str) -> None:
    """Write the library under another name first: processes that build at the same time never see half of one."""
    try:
        handle, temporary = tempfile.mkstemp(dir=library.parent, prefix=".new-", suffix=".so")
    except OSError as error:
        raise _refused(error) from error
    os.close(handle)
    try:
        _run([*command, "-o", temporary], name)
        try:
            with open(temporary, "rb+") as file:
                file.write(hashlib.sha256(file.read()).digest())
        except OSError as error:
            raise _refused(error) from error
        os.replace(temporary, library)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _whole(library: Path) -> bool:
    """Whether the library is there and is what was linked."""
    try:
        data = library.read_bytes()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _refused(error) from error
    kept = hashlib.sha256().digest_size
    return hashlib.sha256(data[:-kept]).digest() == data[-kept:]


def _run(command: list[str], name: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        first = next((line.strip() for line in done.stderr.splitlines() if "error" in line.lower()), "no reason given")
        hint = next((f"; {hint}" for said, hint in _HINTS if said.search(first)), "")
        error = BuildError(f"{Path(command[0]).name} does not build {name} for the emulator: {first}{hint}.")
        error.add_note(done.stderr)
        raise error


def _folder() -> Path:
    folder = paths.cache() / "emulator"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _refused(error) from error
    return folder


def _refused(error: OSError) -> DataError:
    return DataError(
        f"The emulator's cache cannot be used ({error.strerror}); free some space, or point {paths.CACHE_VARIABLE} "
        "at a folder of your own."
    )
