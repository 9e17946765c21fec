"""What timings teach the model: efficiencies, and on the CPU the overhead of a call and how far to trust a comparison.

    measured = overhead + predicted / efficiency            one overhead a kernel, one efficiency for problems alike

Our CPU kernel is taken before torch's only where it won every duel near the problem. The model alone is no reason: it
knows NumPy's BLAS and not torch's. Asked for each of six timed problems by the other five, its lead was off by up to
3.5 times (the 18 timings of host-amd-epyc-f26m2-2c).
"""

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from attention.choose.corrections import Corrections, Observation, corrections
from attention.choose.kinds import class_of
from attention.choose.rates import HOST
from attention.problem import AttentionProblem
from attention.variant import Config, Variant

OVERHEAD_SHARE = 0.9  # of a timing, at the least, that shows what a call costs before any work
NEAREST = 3  # timed problems that must all have been won: one may be a fluke, and all would include other regimes


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


@dataclass(frozen=True)
class Duel:
    """How many times as fast as torch's our kernel was on a problem, at the least that both middle halves leave open.

    `name` is the class of our kernel's problems (attention.choose.corrections.class_of).
    """

    name: str
    problem: AttentionProblem
    lead: float


def calibrated(samples: Iterable[Sample]) -> Corrections:
    """What the samples teach, without those that showed the overhead of a call and nothing of its work."""
    samples = tuple(_newest(samples))
    overheads = _overheads(tuple(sample for sample in samples if HOST in sample.variant.archs))
    return corrections(_observations(samples, overheads))


def _observations(samples: Iterable[Sample], overheads: Mapping[str, float]) -> Iterable[Observation]:
    for each in samples:
        spent = overheads.get(each.variant.path, 0.0)
        if spent <= OVERHEAD_SHARE * each.seconds:
            yield Observation(each.variant, each.config, each.problem, each.promised / (each.seconds - spent), spent)


def _newest(samples: Iterable[Sample]) -> Iterable[Sample]:
    """On the CPU each problem by its last run alone: one that met a busy machine is made good by the next."""
    samples = tuple(samples)
    last = {sample.problem: sample.run for sample in samples}
    return (each for each in samples if HOST not in each.variant.archs or each.run == last[each.problem])


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


def duels(samples: Iterable[Sample]) -> tuple[Duel, ...]:
    """Each CPU problem on which our kernel and torch's were timed in one run, by the best tile of ours."""
    on_host = [sample for sample in _newest(samples) if HOST in sample.variant.archs]
    found: dict[tuple[str, AttentionProblem], float] = {}
    for mine in (sample for sample in on_host if sample.variant.owner == "smscope"):
        theirs = [each.low for each in on_host if each.variant.owner == "torch" and each.problem == mine.problem]
        if theirs:
            key = (class_of(mine.variant, mine.problem), mine.problem)
            found[key] = max(found.get(key, 0.0), min(theirs) / mine.high)
    return tuple(Duel(name, problem, lead) for (name, problem), lead in found.items())


def lead_near(variant: Variant, problem: AttentionProblem, fought: Iterable[Duel]) -> float | None:
    """The least lead of our kernel on the NEAREST problems of its class that were timed; None where they are too few.

    Problems with the triangle and without do not speak for one another: tiles on it are half empty.
    """
    name = class_of(variant, problem)
    alike = [each for each in fought if each.name == name and each.problem.causal == problem.causal]
    nearest = sorted(alike, key=lambda each: _distance(each.problem, problem))[:NEAREST]
    return min(each.lead for each in nearest) if len(nearest) == NEAREST else None


def _distance(one: AttentionProblem, other: AttentionProblem) -> float:
    """Octaves between two problems, over all their sizes."""
    pairs = zip(_sizes(one), _sizes(other), strict=True)
    return sum(abs(math.log2(mine / theirs)) for mine, theirs in pairs)


def _sizes(problem: AttentionProblem) -> tuple[int, int, int, int]:
    return problem.seq_q, problem.seq_kv, problem.head_dim, problem.batch * problem.heads_q
