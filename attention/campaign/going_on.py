"""Problem after problem, each on file before the next begins, until all are timed or the next does not fit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from attention.campaign.plan import Estimate, Job, estimate
from microbench.compile import Source
from microbench.console.progress import watching
from microbench.console.si import counted

Fits = Callable[[float], bool]


@dataclass(frozen=True)
class Ended:
    """How many problems this call timed, and those that are left."""

    timed: int
    left: tuple[Job, ...]


def go_on(
    todo: Sequence[Job],
    fits: Fits,
    compile_ahead: Callable[[Sequence[Source]], object],
    time_one: Callable[[Job], object],
    kept: dict[Source, bool] | None = None,
) -> Ended:
    """Compile what fits the budget with its timing, on all cores, time it, and go on with the rest.

    `fits`: whether so many seconds fit what is left. `time_one` must have stored what it timed when it returns. `kept`
    says which kernels the cache is known to hold, or not.
    Ctrl-C, and what either raises, ends the call and loses nothing that was stored.
    """
    left, kept = list(todo), {} if kept is None else kept
    with watching(len(todo)) as watcher:
        while left:
            count, expected = _first(left, fits, kept)
            if not count:
                break
            if expected.missing:
                watcher.say(f"Compiling {counted(len(expected.missing), 'kernel')} for {counted(count, 'problem')}.")
                compile_ahead(expected.missing)
                kept |= dict.fromkeys(expected.missing, True)
            for job in left[:count]:
                if not fits(job.estimate_s):
                    return Ended(len(todo) - len(left), tuple(left))
                watcher.doing("timing", str(job.posed))
                time_one(job)
                left.remove(job)
                watcher.finished()
    return Ended(len(todo) - len(left), tuple(left))


def _first(jobs: Sequence[Job], fits: Fits, kept: dict[Source, bool]) -> tuple[int, Estimate]:
    """How many of the first jobs fit, their compile included, and what they should take."""
    low, high = 0, len(jobs)
    whole = estimate(jobs, kept)
    if fits(whole.seconds):
        return high, whole
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(estimate(jobs[:middle], kept).seconds) else (low, middle)
    return low, estimate(jobs[:low], kept)
