"""The parts of one GPU, in order: the board first, then what the rest stands on, then what is worth most."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from attention.compare import apart
from attention.compare.cells import Cell
from attention.verify import kernel as attention_kernel
from attention.verify import sanitizer
from attention.verify.builds import tuned
from microbench.console.progress import say
from microbench.machine import arch, nvml
from microbench.probes import discover
from microbench.results.profile import of_kind
from microbench.run import lock
from microbench.verify import probed, results
from microbench.verify.differential import compare
from smscope.verified import board
from smscope.verified.lacks import Host
from smscope.verified.part import Part
from smscope.verified.record import AnyResult

CHUNK = 250  # random problems of one part: one that is interrupted costs so many
FEW = 10  # beside those under compute-sanitizer, which are what its part is for


@dataclass(frozen=True)
class Asked:
    """A GPU ('cuda:N' is the `index`-th visible one), and the options."""

    gpu: nvml.Gpu
    index: int
    problems: int
    quick: bool = False
    seed: int = 0
    sanitize: bool = False
    wait: bool = True  # for another run on this GPU

    @property
    def device(self) -> str:
        return f"cuda:{self.index}"

    @property
    def arch(self) -> str:
        return arch.by_compute_capability(*self.gpu.compute_capability).name

    def where(self) -> dict[str, Any]:
        """The fields of a result that begins now."""
        return results.where(self.gpu, self.quick)


def parts(asked: Asked, host: Host) -> tuple[Part, ...]:
    """All of them, those that the host lacks something for as well."""
    return tuple(_parts(asked, host))


def _parts(asked: Asked, host: Host) -> Iterator[Part]:
    # Of a kind that nobody has measured the whole suite is worth most: its profile comes of it.
    whole = not asked.quick and not of_kind(asked.gpu.slug)
    step, name = ("suite", "every_constant") if whole else ("doctor", "board")
    yield Part(step, name, partial(_held, asked, partial(_board, asked, whole), locks=True), host.cupy)
    for probe in discover():
        if probe.runs_on(arch.by_name(asked.arch)):
            yield Part("probes", probe.name, partial(_held, asked, partial(_probe, asked, probe)), host.cupy)
    for room in compare.NAMES:
        lacks = host.cupy or host.compiler
        yield Part("wrappers", room, partial(_held, asked, partial(_wrappers, asked, room)), lacks)
    kernels = by_worth(asked.arch)
    for number, first in enumerate(range(0, asked.problems, CHUNK)):
        count = min(CHUNK, asked.problems - first)
        for path in kernels:
            work = partial(_kernel, asked, path, count, asked.seed + number)
            yield Part("kernels", f"{path} {first}-{first + count - 1}", partial(_held, asked, work), host.torch)
    for path in kernels if asked.sanitize else ():
        work = partial(_sanitized, asked, path)
        yield Part("sanitizer", path, partial(_held, asked, work), host.torch or host.sanitizer)
    for cell in apart.chosen(asked.arch) if kernels else ():
        work = partial(_cell, asked, cell)
        yield Part("peers", str(cell), partial(_held, asked, work), host.torch)


def by_worth(on: str) -> tuple[str, ...]:
    """Our kernels for this architecture: those written for it first, which run nowhere else."""
    return tuple(sorted(tuned(on), key=lambda path: path.split("/")[0] != on))


def _held(asked: Asked, work: Callable[[], AnyResult], locks: bool = False) -> AnyResult:
    """With the GPU held for this part alone; `locks` where the work holds it itself."""
    with nullcontext() if locks else lock.hold(asked.device, asked.wait, say):
        return work()


def _board(asked: Asked, whole: bool) -> AnyResult:
    return board.verify(asked.device, asked.where(), asked.wait, whole)


def _probe(asked: Asked, probe: Any) -> AnyResult:
    (result,) = probed.verify([probe], asked.device, asked.where())
    return result


def _wrappers(asked: Asked, room: str) -> AnyResult:
    (result,) = compare.verify([room], asked.index, asked.where())
    return result


def _kernel(asked: Asked, path: str, count: int, seed: int) -> AnyResult:
    return attention_kernel.verify(path, asked.where(), count, asked.index, seed)


def _sanitized(asked: Asked, path: str) -> AnyResult:
    return attention_kernel.verify(path, asked.where(), FEW, asked.index, asked.seed, sanitizer.tool_path())


def _cell(asked: Asked, cell: Cell) -> AnyResult:
    return apart.verify(cell, asked.index, asked.where())
