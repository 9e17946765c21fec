"""What timings say of a prediction: predicted over measured seconds, looked up by the most alike first.

A key is a variant, its configuration, the head dim as padded and the kind of problem; under it lie the sizes that were
timed, by octaves. Problems of one query, of few and of many are kinds of their own: they keep other units busy. On the
CPU so are dtypes, since half precision is another rate of torch's and a conversion for ours.

A kernel of ours on a GPU is predicted by its schedule, within some 10 %, and timings of other problems are off by as
much. So those of a key are weighed by their distance, and the model's own word with them, as half a timing at hand:

    log efficiency = sum of timings e^-octaves log ratio / (sum of timings e^-octaves + 1/2)

Where its key was never timed the model stands alone. Left out with its twins, a problem of set a then has a regret of
0.7 % on an H200 and 1.0 % on an H100, the model alone 1.0 and 1.4 %, and what was done before (the nearest size, or any
timing of the head dim or of the kernel) 1.3 and 2.1 %. Of 1/20 to 4 timings one half was the best there.
"""

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from attention.choose.prediction import Efficiency
from attention.choose.rates import HOST
from attention.problem import AttentionProblem
from attention.variant import FEW_QUERIES, Config, Variant

OWN_WORD = 0.5  # timings that a prediction of ours counts for itself
FEW_ON_HOST = 32  # less than a panel of our CPU kernel, whose lanes are queries


@dataclass(frozen=True)
class Kind:
    """What decides which code runs and what keeps it busy: the edges of the band, packing, and how many queries."""

    left: bool
    right: bool
    packed: bool
    queries: str  # 'one', 'few' or 'many'
    dtype: str = ""  # on the CPU


@dataclass(frozen=True)
class Sized:
    """The octave of a problem's size, and what timings of about that size showed."""

    octave: int
    efficiency: Efficiency


Exact = tuple[str, Config, int, Kind]
Width = tuple[str, Config, int]


@dataclass(frozen=True)
class Corrections:
    """Efficiencies by what was timed. Empty where nothing was."""

    exact: Mapping[Exact, tuple[Sized, ...]] = field(default_factory=dict)
    of_width: Mapping[Width, Efficiency] = field(default_factory=dict)
    of_class: Mapping[str, Efficiency] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.of_class)

    def nearest(self, variant: Variant, config: Config, problem: AttentionProblem) -> Efficiency | None:
        """Of this kind of problem the nearest size; else any of its head dim and number of queries; else any at all.

        Of a kernel of ours on a GPU all sizes of this kind, by their distance; else None.
        """
        width, kind = variant.pads(problem.head_dim), kind_of(variant, problem)
        sized = self.exact.get((variant.path, config, width, kind))
        octave = octave_of(variant, problem) if sized else 0
        if variant.owner == "smscope" and HOST not in variant.archs:
            return _weighed(sized, octave) if sized else None
        if sized:
            return min(sized, key=lambda each: (abs(each.octave - octave), each.octave)).efficiency
        found = self.of_width.get((_crowd(variant, kind), config, width))
        return found or self.of_class.get(class_of(variant, problem))

    def timed(self, variant: Variant) -> bool:
        """Whether any timing of a GPU kernel holds."""
        return variant.path in self.of_class


@dataclass(frozen=True)
class Observation:
    """One timing beside its prediction."""

    variant: Variant
    config: Config
    problem: AttentionProblem
    predicted_over_measured: float
    overhead_seconds: float = 0.0


def corrections(observations: Iterable[Observation]) -> Corrections:
    """The medians of what was observed, under every key that it counts for."""
    exact: dict[Exact, dict[int, list[Observation]]] = {}
    widths: dict[Width, list[Observation]] = {}
    classes: dict[str, list[Observation]] = {}
    for each in observations:
        variant, problem = each.variant, each.problem
        width, kind = variant.pads(problem.head_dim), kind_of(variant, problem)
        sizes = exact.setdefault((variant.path, each.config, width, kind), {})
        sizes.setdefault(octave_of(variant, problem), []).append(each)
        widths.setdefault((_crowd(variant, kind), each.config, width), []).append(each)
        classes.setdefault(class_of(variant, problem), []).append(each)
    return Corrections(
        {
            key: tuple(Sized(octave, replace(_median(found), near=True)) for octave, found in sorted(sizes.items()))
            for key, sizes in exact.items()
        },
        {key: _median(found) for key, found in widths.items()},
        {key: _median(found) for key, found in classes.items()},
    )


def kind_of(variant: Variant, problem: AttentionProblem) -> Kind:
    """The kind of a problem for a variant."""
    return _kind(problem, HOST in variant.archs)


@lru_cache(maxsize=64)  # every candidate of a choice asks
def _kind(problem: AttentionProblem, on_host: bool) -> Kind:
    edges, queries = problem.edges, problem.mean_lengths[0]
    if on_host:
        named = "few" if queries < FEW_ON_HOST else "many"
    else:
        named = "one" if queries == 1 else "few" if queries <= FEW_QUERIES else "many"
    return Kind(
        edges.left is not None, edges.right is not None, problem.varlen, named, problem.dtype if on_host else ""
    )


def class_of(variant: Variant, problem: AttentionProblem) -> str:
    """The problems of a variant whose timings say something of one another."""
    kind = kind_of(variant, problem)
    return f"{variant.path} {kind.dtype} {kind.queries} queries" if kind.dtype else variant.path


def octave_of(variant: Variant, problem: AttentionProblem) -> int:
    """The size that moves an efficiency: keys of a sequence, or all keys together where queries are few on a GPU.

    Few queries leave a GPU waiting for memory, and how long depends on all that is read.
    """
    queries, keys = problem.mean_lengths
    few = HOST not in variant.archs and queries <= FEW_QUERIES
    return round(math.log2(keys * problem.batch * problem.heads_kv if few else keys))


def _weighed(sized: tuple[Sized, ...], octave: int) -> Efficiency:
    """The mean of the logarithms of sizes, and of the model's own word."""
    weights = [each.efficiency.timings * math.exp(-abs(each.octave - octave)) for each in sized]
    logs = (math.log(each.efficiency.value) for each in sized)
    off = sum(weight * log for weight, log in zip(weights, logs, strict=True))
    timings = sum(each.efficiency.timings for each in sized)
    return Efficiency(_figure(math.exp(off / (sum(weights) + OWN_WORD))), timings, near=True)


def _crowd(variant: Variant, kind: Kind) -> str:
    return f"{variant.path} {kind.dtype} {kind.queries}"


def _median(found: list[Observation]) -> Efficiency:
    ratios = [each.predicted_over_measured for each in found]
    return Efficiency(
        _figure(statistics.median(ratios)), len(found), overhead_seconds=_figure(found[0].overhead_seconds)
    )


def _figure(value: float) -> float:
    """Six digits, so that every CPU derives the same: NumPy's logarithms end differently with AVX2 and AVX-512."""
    return float(f"{value:.6g}")
