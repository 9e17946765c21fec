"""Kernels into the cache before a GPU waits for them, on all cores. Needs NVRTC, and no GPU."""

import os
from collections.abc import Iterable
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

from microbench.compile import Cubin, Source, cache, compile_all, is_kept
from microbench.console.processes import beside
from microbench.console.progress import watching
from microbench.errors import EnvironmentLacks

MOST = 4  # kernels that one process compiles before it tells
FEW = 1  # a core: starting the processes takes as long as these
DIED = (
    "A compiling process died: for want of memory, or since the script that asked does so outside of "
    '`if __name__ == "__main__":`, which new processes need; what was compiled is kept.'
)


@dataclass(frozen=True)
class Compiled:
    """How many kernels there are, what the compiler said of those that it refused, and which NVRTC it was."""

    kernels: int
    refused: tuple[str, ...]
    nvrtc: str


def compile_together(sources: Iterable[Source], jobs: int | None = None) -> Compiled:
    """Compile each source once.

    Raises EnvironmentLacks without NVRTC, or where a process dies; DataError without room for the cache.
    """
    cache.require_writable()
    wanted = list(dict.fromkeys(sources))
    cores = jobs or os.cpu_count() or 1
    chunk = max(1, min(MOST, len(wanted) // cores))
    parts = [wanted[at : at + chunk] for at in range(0, len(wanted), chunk)]
    refused: list[str] = []
    compilers: set[str] = set()
    workers = min(cores, max(1, len(parts)))
    with watching(len(wanted)) as watch, beside(workers) as pool:
        running = {pool.submit(_compiled, part): len(part) for part in parts}
        for done in as_completed(running):
            try:
                errors, nvrtc = done.result()
            except BrokenProcessPool as error:
                raise EnvironmentLacks(DIED) from error
            refused += errors
            compilers |= nvrtc
            watch.doing("compile", f"{len(refused)} refused")
            watch.finished(running[done])
    return Compiled(len(wanted), tuple(refused), " ".join(sorted(compilers)))


def compile_ahead(sources: Iterable[Source]) -> None:
    """Compile what the cache lacks where it is enough for all cores; who needs a kernel compiles the rest, or says why.

    Raises what compile_together raises.
    """
    missing = [source for source in dict.fromkeys(sources) if not is_kept(source)]
    if len(missing) > FEW * (os.cpu_count() or 1):
        compile_together(missing)


def _compiled(sources: list[Source]) -> tuple[list[str], set[str]]:
    """The errors, and the compilers of what was compiled."""
    errors, compilers = [], set()
    for source, made in zip(sources, compile_all(sources), strict=True):
        if isinstance(made, EnvironmentLacks):
            raise made
        if isinstance(made, Cubin):
            compilers.add(made.nvrtc)
        else:
            errors.append(f"{' '.join(source.flags)}: {made}")
    return errors, compilers
