"""The wrappers on a GPU against the emulator: a result for each room of the catalogue, and for the refused copies."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from microbench.compile.together import compile_ahead
from microbench.console.progress import watching
from microbench.emulator import toolchain
from microbench.errors import BuildError
from microbench.verify import processes
from microbench.verify.differential import catalogue, trials
from microbench.verify.differential.catalogue import cases, chunks, families
from microbench.verify.differential.emulated import emulated
from microbench.verify.differential.gpu import Gpu
from microbench.verify.differential.score import Held, Score, score
from microbench.verify.results import Failure, WrappersResult

TRIALS = "refused_copies"
NAMES = (*catalogue.ROOMS, TRIALS)
Found = list[tuple[str, Held | processes.Failed]]  # by the wrapper's key


def verify(names: Sequence[str], device: int, where: Mapping[str, Any]) -> Iterator[WrappersResult]:
    """A result of each of NAMES, as soon as it is whole. `where` is results.where() of the `device`-th GPU.

    Raises EnvironmentLacks without a C++ compiler.
    """
    arch, seeds = str(where["arch"]), catalogue.QUICK_SEEDS if where["quick"] else catalogue.SEEDS
    for name in names:
        if name == TRIALS:
            yield _result(name, trials.examined(device, arch), {}, 1, where)
            continue
        toolchain.runtime()  # before the workers, which would build it side by side
        numbers, found, worst = catalogue.rooms()[name], [], dict[str, float]()
        compile_ahead(cases()[number].source_for(arch) for number in numbers)
        with watching(len(numbers)) as watcher:
            for number, answer in processes.answers(families(numbers), partial(opened, device, arch, seeds)):
                case = cases()[number]
                found.append((case.key, answer))
                if isinstance(answer, Held) and case.tolerance and np.isfinite(answer.score.worst):
                    worst[case.wrapper] = max(answer.score.worst, worst.get(case.wrapper, 0.0))
                watcher.doing(name, case.wrapper)
                watcher.finished()
        yield _result(name, found, worst, seeds, where)


def opened(device: int, arch: str, seeds: int) -> Callable[[int], Held]:
    """In a worker: a GPU that holds a case against the emulator."""
    gpu = Gpu(device)

    def held(number: int) -> Held:
        case, total = cases()[number], Score()
        try:
            kernel, cubin = gpu.kernel(case.source_for(arch))
        except BuildError as error:
            return Held(unsupported=str(error))
        for part in chunks(seeds):
            found = gpu.results(kernel, case.launches(part), f"run {case.key}")
            total += score(found, emulated(number, part), case.tolerance)
        return Held(total, cubin.sha256, cubin.nvrtc)

    return held


def _result(
    name: str, found: Found, worst: Mapping[str, float], seeds: int, where: Mapping[str, Any]
) -> WrappersResult:
    held = [answer for _, answer in found if isinstance(answer, Held)]
    unsupported = sum(bool(each.unsupported) for each in held)
    return WrappersResult(
        **where,
        wrappers=name,
        cases=len(found) - unsupported,
        unsupported=unsupported,
        seeds=seeds,
        worst_errors=dict(sorted(worst.items())),
        nvrtc=" ".join(sorted({each.nvrtc for each in held if each.nvrtc})),
        cubins=tuple(sorted({each.cubin for each in held if each.cubin})),
        failures=tuple(Failure(what=key, reason=why) for key, answer in found if (why := _wrong(answer))),
    )


def _wrong(answer: Held | processes.Failed) -> str:
    if isinstance(answer, processes.Failed):
        return answer.reason
    differing = answer.score.differing
    return f"{differing} results differ from the emulator's, the worst by {answer.score.worst:.1e}" if differing else ""
