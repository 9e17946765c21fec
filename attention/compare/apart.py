"""A few cells on this machine's GPU, each in a process of its own: ours beside every peer installed, kept in no table.

It is for a GPU on which our kernels may never have run: a fault costs one cell, and no later choice goes by these
timings. `attention.compare.run` is what fills data/attention.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from attention.choose.machine import UNMEASURED_VARIABLE
from attention.compare import cells
from attention.compare.cells import Cell
from attention.timed.timing import PEER, Timing
from microbench.errors import DeviceError, EnvironmentLacks, NoGpu
from microbench.machine import arch
from microbench.verify import processes
from microbench.verify.results import Failure, Result

LENGTH = 4096  # of the grid's sequences, the middle one: every head dim and mask at it
LIMIT_S = 300.0  # of one cell: FlashAttention-4, cuDNN and ours compile what they have not met


class PeersResult(Result):
    """One cell, timed in turns. A failure is a candidate of ours that gave a wrong result or none."""

    folder = "peers"
    kind: Literal["peers"] = "peers"
    cell: str
    timings: tuple[Timing, ...]
    left_out: tuple[Failure, ...] = ()  # peers that cannot, and why

    @property
    def subject(self) -> str:
        return self.cell

    @property
    def told(self) -> str:
        own = [timing for timing in self.timings if not timing.variant.startswith(PEER)]
        peers = [timing for timing in self.timings if timing.variant.startswith(PEER)]
        if not own:
            return "none of ours gave a right result"
        best = min(own, key=lambda timing: timing.seconds)
        said = f"{best.variant} takes {best.seconds * 1e6:.0f} µs"
        if not peers:
            return f"{said}, and no peer serves this"
        other = min(peers, key=lambda timing: timing.seconds)
        return f"{said}, {other.variant} {other.seconds * 1e6:.0f} µs: {other.seconds / best.seconds:.2f} times as fast"


def chosen(on: str) -> tuple[Cell, ...]:
    """The cells that a GPU of this architecture times: float16 where it has no bfloat16."""
    dtype = "bfloat16" if "bf16" in arch.by_name(on).features else "float16"
    middle = (cell for cell in cells.grid() if cell.problem.seq_q == LENGTH)
    return tuple(replace(cell, problem=replace(cell.problem, dtype=dtype)) for cell in middle)


def verify(cell: Cell, device: int, where: Mapping[str, Any]) -> PeersResult:
    """Check and time one cell on the `device`-th GPU. `where` is results.where() of it.

    Raises EnvironmentLacks where no kernel of ours serves the cell or a worker lacks torch, DeviceError where the
    process came to no end.
    """
    ((_, answer),) = processes.answers([[cell]], partial(opened, device), lanes=1, limit_s=LIMIT_S)
    if isinstance(answer, processes.Failed):
        raise DeviceError(f"{cell} could not be timed on {where['name']}: {answer.reason}.")
    own = [outcome for outcome in answer if not outcome.name.startswith(PEER)]
    if not own:
        raise EnvironmentLacks(f"No kernel of ours serves {cell} on {where['name']}, so nothing was timed.")
    timings = tuple(outcome.timing for outcome in answer if outcome.timing is not None)
    failures = {
        outcome.name: Failure(what=outcome.name, reason=outcome.reason or "")
        for outcome in answer
        if outcome.timing is None
    }
    wrong = tuple(failures[outcome.name] for outcome in own if outcome.name in failures)
    return PeersResult(
        **where,
        nvrtc="",
        cubins=tuple(sorted({timing.cubin_sha256 for timing in timings if timing.cubin_sha256})),
        failures=wrong,
        cell=str(cell),
        timings=timings,
        left_out=tuple(each for name, each in failures.items() if name.startswith(PEER)),
    )


def opened(device: int) -> Callable[[Cell], tuple[Any, ...]]:
    """In a worker: the Outcomes of a cell, also of kernels of ours that nobody has timed on such a GPU."""
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # NVML's, before torch counts
    os.environ[UNMEASURED_VARIABLE] = "1"
    import torch

    from attention.compare import run

    if not torch.cuda.is_available():
        raise NoGpu("This torch sees no NVIDIA GPU; install a CUDA build of it.")
    torch.cuda.set_device(device)
    gpu = run.opened()

    def outcomes(cell: Cell) -> tuple[Any, ...]:
        return tuple(run.time_entries(gpu, cell, _entries(cell)))

    return outcomes


def _entries(cell: Cell) -> Iterator[Any]:
    """What attention.compare.run times of a cell, and torch's memory-efficient kernel, its best before Ampere."""
    from attention.compare import run
    from attention.compare.candidates import memory_efficient

    if cell.problem.dtype == "float16":
        yield run.Entry(memory_efficient())
    yield from run.entries(cell, every=False, flex=False)
