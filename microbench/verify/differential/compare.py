"""Every case on the GPU against the emulator, and a row of what came of it."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from microbench.compile import require_all
from microbench.console.progress import watching
from microbench.errors import EnvironmentLacks
from microbench.machine import nvml
from microbench.verify import processes
from microbench.verify.differential import emulated
from microbench.verify.differential.catalogue import SEEDS, cases, chunks, families
from microbench.verify.differential.rows import DifferentialRow
from microbench.verify.differential.score import Score, score


def build() -> int:
    """Every cubin from the cache or into it; how many there are. Needs no GPU. Raises the first error."""
    return len(require_all(case.compiled for case in cases()))


def compare(file: Path | None = None, seeds: int = SEEDS) -> list[DifferentialRow]:
    """A row for every case, also where it failed. `file`: the emulator's results; without one it runs here.

    Raises EnvironmentLacks where there is no GPU, or neither a file nor a C++ compiler; BuildError.
    """
    if not nvml.visible_gpus():
        raise EnvironmentLacks(f"There is no GPU to hold against the emulator: {nvml.why_no_gpu()}.")
    everything = families()
    build()
    if file is None:
        emulated.build(number for family in everything for number in family)
    gpu = nvml.visible_gpus()[0]
    row = partial(_row, gpu=gpu.slug, driver=nvml.facts(gpu).driver or "", seeds=seeds)
    rows: dict[int, DifferentialRow] = {}
    with watching(len(cases())) as watcher:
        for number, answer in processes.answers(everything, partial(opened, file, seeds)):
            rows[number] = row(number, answer)
            watcher.doing("differential", cases()[number].wrapper)
            watcher.finished()
            if rows[number].verdict == "failed":
                watcher.say(f"{cases()[number].key}: {rows[number].reason}")
    return [rows[number] for number in sorted(rows)]


def opened(file: Path | None, seeds: int) -> Callable[[int], Score]:
    """In a worker: a GPU that scores a case."""
    from microbench.verify.differential.gpu import Gpu

    gpu = Gpu()
    expected = emulated.Saved(file).of if file else emulated.emulated

    def scored(number: int) -> Score:
        case, total = cases()[number], Score()
        kernel = gpu.kernel(case.compiled)
        for part in chunks(seeds):
            found = gpu.results(kernel, case.launches(part), f"run {case.key}")
            total += score(found, expected(number, part), case.tolerance)
        return total

    return scored


def _row(number: int, answer: Score | processes.Failed, *, gpu: str, driver: str, seeds: int) -> DifferentialRow:
    case, failed = cases()[number], isinstance(answer, processes.Failed)
    counted = Score() if isinstance(answer, processes.Failed) else answer
    return DifferentialRow(
        gpu=gpu,
        driver=driver,
        wrapper=case.wrapper,
        layout=case.layout,
        values=case.values,
        seeds=seeds,
        comparison="tolerance" if case.tolerance else "exact",
        tolerance=case.tolerance,
        differing=None if failed else counted.differing,
        worst_error=None if failed or not np.isfinite(counted.worst) else counted.worst,
        verdict="failed" if failed else "differs" if counted.differing else "agrees",
        reason=answer.reason if isinstance(answer, processes.Failed) else None,
    )
