"""What a run compiles, before its first campaign: on all cores, in batches, into the cubin cache.

A worker that finds no cubin compiles it itself, one at a time, between two measurements; so whatever fails here costs
time, and its reason comes with the point. The supervisor loads no compiler: all of it happens in processes of a pool.
"""

import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

from microbench.compile import Source, compile_all, is_kept, source_of
from microbench.compile import numba as twins
from microbench.errors import SmscopeError
from microbench.machine.arch import Arch, Machine
from microbench.machine.cpu import cores
from microbench.probe import Build, Probe
from microbench.probes import discover

# At most so many kernels are compiled together: enough for the start of nvdisasm not to matter.
BATCH = 32

Piece = TypeVar("Piece")


@dataclass(frozen=True)
class Missing:
    """The kernels of a run that the cache does not hold: CUDA C++, and (probe, build) of the second method."""

    sources: tuple[Source, ...] = ()
    twins: tuple[tuple[str, Build], ...] = ()

    def __len__(self) -> int:
        return len(self.sources) + len(self.twins)


@dataclass(frozen=True)
class Built:
    """How many kernels were new, and why probes go without their second method, by name."""

    kernels: int = 0
    lacking: Mapping[str, str] = field(default_factory=dict)


def build(
    probes: Iterable[Probe], machine: Machine, quick: bool, folders: Iterable[Path], say: Callable[[str], None]
) -> Built:
    """Compile what the cache lacks of these probes on this machine, both methods; `say` is told before and why not."""
    mine = tuple(probe for probe in probes if probe.runs_on(machine.arch))
    wanted = missing(mine, machine, quick)
    if not wanted:
        return Built()
    processes = min(len(cores()), len(wanted))
    say(f"Compiling {len(wanted)} kernels in {processes} processes; the next run finds them in its cache.")
    pool = _pool(processes)
    try:
        trial = pool.submit(_why_no_twins, machine.arch) if wanted.twins else None
        work = [pool.submit(_compile, batch) for batch in _batches(wanted.sources, processes)]
        lacks = trial.result() if trial else ""
        if not lacks:
            places = tuple(folders)
            work += [
                pool.submit(_compile_twins, batch, machine.arch, places) for batch in _batches(wanted.twins, processes)
            ]
        _wait(work)
    except BrokenProcessPool:
        say("A compiling process died (for want of memory, as a rule); workers compile what is left, one at a time.")
        return Built()
    finally:
        pool.shutdown(cancel_futures=True)
    if lacks:
        say(f"The second method is left out: {lacks}")
    return Built(len(wanted), {name: lacks for name, _ in wanted.twins} if lacks else {})


def _pool(processes: int) -> Executor:
    return ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_leave_interrupts)


def missing(probes: Iterable[Probe], machine: Machine, quick: bool) -> Missing:
    """What the cache lacks. A build that cannot even be named is left to the worker, which says why."""
    sources: dict[Source, None] = {}
    second: dict[tuple[str, Build], None] = {}
    for probe in probes:
        for one in _builds(probe, machine, quick):
            try:
                source = source_of(probe, one, machine.arch)
                if not is_kept(source):
                    sources[source] = None
                if probe.twin is not None and not twins.is_kept(probe, one, machine.arch):
                    second[probe.name, one] = None
            except SmscopeError:
                continue
    return Missing(tuple(sources), tuple(second))


def _builds(probe: Probe, machine: Machine, quick: bool) -> tuple[Build, ...]:
    """The distinct builds of the points that this machine measures."""
    if probe.builds is None:
        return ()
    try:
        points = [point for point in probe.points(quick) if not (probe.skip and probe.skip(machine, point))]
        return tuple(dict.fromkeys(one for point in points for one in probe.builds(point)))
    except Exception:  # a probe's own functions: the point's row will say it
        return ()


def _batches(pieces: tuple[Piece, ...], processes: int) -> Iterator[tuple[Piece, ...]]:
    """Four a process and more, so that processes end together."""
    size = max(1, min(BATCH, len(pieces) // (4 * processes)))
    for start in range(0, len(pieces), size):
        yield pieces[start : start + size]


def _wait(work: Iterable[Future[int]]) -> None:
    for each in work:
        each.exception()


# In the pool ---------------------------------------------------------------------------------------------------------


def _leave_interrupts() -> None:
    """A Ctrl-C at the terminal is the supervisor's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _why_no_twins(arch: Arch) -> str:
    from microbench.compile.numba_trial import why_not

    return why_not(arch)


def _compile(batch: tuple[Source, ...]) -> int:
    return len(compile_all(batch))


def _compile_twins(batch: Iterable[tuple[str, Build]], arch: Arch, folders: tuple[Path, ...]) -> int:
    by_name = {probe.name: probe for probe in discover(*folders)}
    return len(twins.compile_twins([(by_name[name], one) for name, one in batch], arch))
