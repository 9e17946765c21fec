"""What timings teach the model: efficiencies, and on the CPU the overhead of a call and how far to trust a comparison.

    measured = overhead + predicted / efficiency            one overhead a kernel, one efficiency for problems alike

Our CPU kernel is taken before torch's only where it is predicted to win by more than such predictions have erred. The
error is asked of the timings themselves: each eighth of the timed problems is predicted from the other seven.
"""

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from attention.model import HOST, Efficiency, nearest_efficiency, timed_class, timed_keys
from attention.problem import AttentionProblem
from attention.variant import Config, Variant

OVERHEAD_SHARE = 0.9  # of a timing, at the least, that shows what a call costs before any work
FOLDS = 8
FEWEST_PAIRS = 4  # problems with timings of both kernels, below which nothing is known of the error


@dataclass(frozen=True)
class Sample:
    """One timing beside the model's own promise for it. `low` and `high` hold the middle half of the timed calls."""

    variant: Variant
    config: Config
    problem: AttentionProblem
    promised: float
    seconds: float
    low: float
    high: float
    run: str | None = None


def calibrated(samples: Iterable[Sample]) -> dict[str, Efficiency]:
    """Efficiencies by attention.model.timed_keys, each the median over the timings that it covers."""
    samples = tuple(_newest(samples))
    on_host = tuple(sample for sample in samples if HOST in sample.variant.archs)
    overheads = _overheads(on_host)
    found = _efficiencies(samples, overheads)
    for name, margin in _margins(on_host, overheads).items():
        found |= {key: replace(each, margin=margin) for key, each in found.items() if key.startswith(name)}
    return found


def _newest(samples: Iterable[Sample]) -> Iterable[Sample]:
    """On the CPU each problem by its last run alone: one that met a busy machine is made good by the next."""
    samples = tuple(samples)
    last = {sample.problem: sample.run for sample in samples}
    return (each for each in samples if HOST not in each.variant.archs or each.run == last[each.problem])


def _efficiencies(samples: Iterable[Sample], overheads: Mapping[str, float]) -> dict[str, Efficiency]:
    ratios: dict[str, list[float]] = {}
    overhead: dict[str, float] = {}
    for sample in samples:
        spent = overheads.get(sample.variant.path, 0.0)
        if spent > OVERHEAD_SHARE * sample.seconds:
            continue  # it showed the overhead, and says nothing of the work
        for key in timed_keys(sample.variant, sample.config, sample.problem):
            ratios.setdefault(key, []).append(sample.promised / (sample.seconds - spent))
            overhead[key] = spent
    return {key: Efficiency(statistics.median(each), len(each), overhead[key]) for key, each in ratios.items()}


def _overheads(samples: tuple[Sample, ...]) -> dict[str, float]:
    """Of each kernel: its seconds on the smallest problem timed, less the promise, where hardly anything is left."""
    found: dict[str, float] = {}
    for path in {sample.variant.path for sample in samples}:
        mine = [sample for sample in samples if sample.variant.path == path]
        least = min(sample.promised for sample in mine)
        smallest = [sample for sample in mine if sample.promised == least]
        seconds = statistics.median(sample.seconds for sample in smallest)
        if least < (1 - OVERHEAD_SHARE) * seconds:
            # A hiccup there is no overhead: no call at all takes less than that.
            found[path] = min(seconds - least, *(sample.seconds for sample in mine))
    return found


def _margins(samples: tuple[Sample, ...], overheads: Mapping[str, float]) -> dict[str, float]:
    """By our kernel's timed_class: the most that a predicted speed-up over torch's kernel has exceeded the measured."""
    theirs = [sample for sample in samples if sample.variant.owner == "torch"]
    found: dict[str, float] = {}
    for name, mine in _by_class(sample for sample in samples if sample.variant.owner == "smscope").items():
        errors = _errors(mine, theirs, overheads)
        if len(errors) >= FEWEST_PAIRS:
            found[name] = max(1.0, *errors)
    return found


def _by_class(samples: Iterable[Sample]) -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {}
    for sample in samples:
        found.setdefault(timed_class(sample.variant, sample.problem), []).append(sample)
    return found


def _errors(mine: list[Sample], theirs: list[Sample], overheads: Mapping[str, float]) -> list[float]:
    """Predicted speed-up over the measured, of each problem that both were timed on, without its own timings.

    The measured one is the least that the middle halves of both leave open, so that wide timings mistrust themselves.
    """
    both = list(dict.fromkeys(sample.problem for sample in mine))
    rivals = {problem: [each for each in theirs if each.problem == problem] for problem in both}
    both = [problem for problem in both if rivals[problem]]
    errors: list[float] = []
    for fold in range(min(FOLDS, len(both))):
        left_out = set(both[fold::FOLDS])
        others = [sample for sample in (*mine, *theirs) if sample.problem not in left_out]
        known = _efficiencies(others, overheads)
        for sample in (sample for sample in mine if sample.problem in left_out):
            ours = _seconds(sample, known)
            fastest = min((_seconds(rival, known), rival.low) for rival in rivals[sample.problem])
            if ours and fastest[0]:
                errors.append((fastest[0] / ours) / (fastest[1] / sample.high))
    return errors


def _seconds(sample: Sample, known: Mapping[str, Efficiency]) -> float:
    nearest = nearest_efficiency(known, sample.variant, sample.config, sample.problem)
    return sample.promised / nearest.value + nearest.overhead_seconds if nearest else 0.0
