"""Time our candidates beside torch's on this machine: one process, one timer, alternating, medians.

Every candidate is checked against the float64 oracle before it is timed; a wrong one is named and not timed.
"""

from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from attention.choose import learned
from attention.choose.candidates import Candidate
from attention.choose.machine import machine_profile
from attention.compare import rows
from attention.compare.cells import Cell
from attention.errors import ADDS_TORCH, EnvironmentLacks
from attention.oracle import trials
from attention.oracle.reference import Comparison
from attention.problem import AttentionProblem
from attention.timed import timings
from attention.timed.identity import text_sha256
from attention.timed.timing import Pass, Timing
from attention.variant import by_path
from microbench.console.progress import watching
from microbench.device.host import HostDevice, trouble, usage
from microbench.machine.cpu import cores
from microbench.measure import turns

PACKAGES = ("smscope", "torch", "numba", "llvmlite", "numpy")


@dataclass(frozen=True)
class Measured:
    """One candidate of one problem. `timing` is None where the result was wrong, and `failure` says how wrong.

    `disturbed` says who else had the cores meanwhile: such timings are not kept, since choices would rest on them.
    """

    problem: AttentionProblem
    candidate: Candidate
    timing: Timing | None
    failure: str | None = None
    picked: bool = False
    disturbed: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.candidate.variant.rpartition('/')[2]} {self.candidate.config}"


def bench(
    problems: list[AttentionProblem],
    *,
    passes: Pass = "forward",
    only: str | None = None,
    every: bool = False,
    unpredicted: bool = True,
) -> list[Measured]:
    """Time a pass of each problem by its candidates on this CPU: each variant's best predicted one, or `every` one.

    Without `unpredicted`, only kernels that are predicted: the timings of others correct nothing, and take long.
    Appends what was measured to data/attention/<this machine>.jsonl. Raises EnvironmentLacks, UnsupportedError.
    """
    try:
        import torch
    except ImportError as error:
        raise EnvironmentLacks(
            f"The bench times torch's kernel beside ours, and it is not here; {ADDS_TORCH}."
        ) from error
    work = [(problem, _candidates(problem, passes, only, every, unpredicted)) for problem in problems]
    measured: list[Measured] = []
    begun, before = datetime.now(UTC).isoformat(timespec="seconds"), usage()
    with (
        watching(sum(len(candidates) for _, candidates in work)) as watcher,
        closing(HostDevice()) as device,
        torch.no_grad(),
    ):
        for problem, candidates in work:
            watcher.doing(str(problem), "checking and timing")
            measured += _bench_one(device, problem, passes, candidates, begun, watcher.finished)
    disturbed = trouble(before, usage(), len(cores()))
    for each in measured:
        if each.timing is not None and not disturbed:
            timings.write(each.timing)
    for path in {each.candidate.variant for each in measured}:
        by_path(path).prepare()  # in every dtype, so that no call has to
    return [replace(each, disturbed=disturbed) for each in measured]


def _candidates(
    problem: AttentionProblem, passes: Pass, only: str | None, every: bool, unpredicted: bool
) -> list[tuple[Candidate, bool]]:
    choice = learned.choice_on(machine_profile("cpu").profile, problem, passes=passes, only=only)
    wanted: dict[str, Candidate] = {}
    for candidate in choice.candidates if every else (choice.pick, *choice.candidates):
        if unpredicted or candidate.prediction is not None:
            wanted.setdefault(f"{candidate.variant} {candidate.config}" if every else candidate.variant, candidate)
    return [(candidate, candidate == choice.pick) for candidate in wanted.values()]


def _bench_one(
    device: HostDevice,
    problem: AttentionProblem,
    passes: Pass,
    candidates: list[tuple[Candidate, bool]],
    run_id: str,
    finished: Callable[[], None],
) -> list[Measured]:
    import torch

    trial = trials.of_pass(passes, problem)
    calls: dict[int, Callable[[], Any]] = {}
    errors: dict[int, Comparison] = {}
    failures: dict[int, str] = {}
    for index, (candidate, _) in enumerate(candidates):
        run, config = by_path(candidate.variant).load(), candidate.config

        def call(run: Any = run, config: Any = config) -> Any:
            return trial.call(run, config)

        errors[index] = trial.judged(call())
        if errors[index].ok:
            calls[index] = call
        else:
            failures[index] = f"wrong: {errors[index]}"
    timed = turns.in_turns(device, calls, f"{run_id} {problem}") if calls else {}
    found = []
    for index, (candidate, picked) in enumerate(candidates):
        finished()
        timing = None
        if index in timed:
            timing = rows.row(
                *(device.machine, Cell(problem), candidate.variant, timed[index], errors[index]),
                run=run_id,
                packages=installed_packages(),
                threads=torch.get_num_threads(),
                passes=passes,
                config=candidate.config,
                source_sha256=text_sha256(candidate.variant) if candidate.owner == "smscope" else "",
                predicted_seconds=candidate.prediction.seconds if candidate.prediction else None,
            )
        found.append(Measured(problem, candidate, timing, failures.get(index), picked))
    return found


def installed_packages() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
