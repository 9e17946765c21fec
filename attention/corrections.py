"""What timings say of a prediction: predicted over measured seconds, looked up by the most alike first.

A key is a variant, its configuration, the head dim as padded and the kind of problem; under it lie the sizes that were
timed, by octaves. Problems of one query, of few and of many are kinds of their own: they keep other units busy.
"""

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from attention.model import Efficiency
from attention.problem import AttentionProblem
from attention.variant import Config, Variant

FEW_QUERIES = 128  # as many rows as the smallest tile of a prefill kernel has


@dataclass(frozen=True)
class Kind:
    """What decides which code runs and what keeps it busy: the edges of the band, packing, and how many queries."""

    left: bool
    right: bool
    packed: bool
    queries: str  # 'one', 'few' or 'many'


@dataclass(frozen=True)
class Sized:
    """The octave of a problem's size, and what timings of about that size showed."""

    octave: int
    efficiency: Efficiency


Exact = tuple[str, Config, int, Kind]
Width = tuple[str, Config, int, str]


@dataclass(frozen=True)
class Corrections:
    """Efficiencies by what was timed. Empty where nothing was."""

    exact: Mapping[Exact, tuple[Sized, ...]] = field(default_factory=dict)
    of_width: Mapping[Width, Efficiency] = field(default_factory=dict)
    of_variant: Mapping[str, Efficiency] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.of_variant)

    def nearest(self, variant: Variant, config: Config, problem: AttentionProblem) -> Efficiency | None:
        """Of this kind of problem the nearest size; else any of its head dim and number of queries; else any at all."""
        width, kind = variant.pads(problem.head_dim), kind_of(problem)
        sized = self.exact.get((variant.path, config, width, kind))
        if sized:
            octave = octave_of(problem)
            return min(sized, key=lambda each: (abs(each.octave - octave), each.octave)).efficiency
        found = self.of_width.get((variant.path, config, width, kind.queries))
        return found or self.of_variant.get(variant.path)

    def timed(self, variant: Variant) -> bool:
        """Whether any timing of a variant holds."""
        return variant.path in self.of_variant


@dataclass(frozen=True)
class Observation:
    """One timing beside its prediction."""

    variant: Variant
    config: Config
    problem: AttentionProblem
    predicted_over_measured: float


def corrections(observations: Iterable[Observation]) -> Corrections:
    """The medians of what was observed, under every key that it counts for."""
    exact: dict[Exact, dict[int, list[float]]] = {}
    widths: dict[Width, list[float]] = {}
    variants: dict[str, list[float]] = {}
    for each in observations:
        path, width, kind = each.variant.path, each.variant.pads(each.problem.head_dim), kind_of(each.problem)
        sizes = exact.setdefault((path, each.config, width, kind), {})
        sizes.setdefault(octave_of(each.problem), []).append(each.predicted_over_measured)
        widths.setdefault((path, each.config, width, kind.queries), []).append(each.predicted_over_measured)
        variants.setdefault(path, []).append(each.predicted_over_measured)
    return Corrections(
        {
            key: tuple(Sized(octave, replace(_median(found), near=True)) for octave, found in sorted(sizes.items()))
            for key, sizes in exact.items()
        },
        {key: _median(found) for key, found in widths.items()},
        {key: _median(found) for key, found in variants.items()},
    )


def kind_of(problem: AttentionProblem) -> Kind:
    """The kind of a problem."""
    edges, queries = problem.edges, problem.mean_lengths[0]
    named = "one" if queries == 1 else "few" if queries <= FEW_QUERIES else "many"
    return Kind(edges.left is not None, edges.right is not None, problem.varlen, named)


def octave_of(problem: AttentionProblem) -> int:
    """The size that moves an efficiency: keys of a sequence, or all keys together where queries are few.

    Few queries leave a GPU waiting for memory, and how long depends on all that is read.
    """
    queries, keys = problem.mean_lengths
    return round(math.log2(keys if queries > FEW_QUERIES else keys * problem.batch * problem.heads_kv))


def _median(found: list[float]) -> Efficiency:
    return Efficiency(statistics.median(found), len(found))
