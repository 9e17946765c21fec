"""What timings say of a prediction: predicted over measured seconds, looked up by the most alike first.

A key is a variant, its configuration, the head dim as padded and the kind of problem; under it lie the problems that
were timed, by their sizes. Problems of one query, of few and of many are kinds of their own: they keep other units
busy. On the CPU so are dtypes, since half precision is another rate of torch's and a conversion for ours.

On a GPU a prediction is off by what its terms leave out: what a call costs however little it does, waves of blocks that
end unevenly. Problems of about the same queries, keys and heads share that. So those of a key are weighed by their
distance, in octaves, and with them a word that needs no neighbour:

    log efficiency = (sum of problems e^-2 distance log ratio + w log word) / (sum of problems e^-2 distance + w)
    distance^2     = sum of the squares of what lies between two places (choose.kinds), in octaves

A prediction of ours is off as a call, and a configuration beside the others less: a set times few of them on a problem,
and each other ones. So the mean of a problem's configurations is taken from each of them, and both are looked up: what
all showed, with the model's own word, 1, and what one differs by, with none, w = OWN_WORD each. What was never timed
goes by what all showed. Of torch's the word is the median of its head dim and number of queries, with w = PRIOR: little
is known of its inside. Where its key was never timed, it is corrected by that median alone.

Chosen on sets of use 22 to 33 of an H200, each asked with the other sets known, among our own configurations: 97.9 % of
the picks are within 3 % of the best, and 97.2 were by each configuration's own ratios, e^-distance and w = 1/4; of up
to 16 queries 95.6 and 94.0. w = 1/4 and weights e^-1.4 to e^-2.5 distance do nearly as well. PRIOR was chosen on an
H100: 1/20 to 1/4 do as well, 1 worse.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from attention.choose.kinds import Kind, class_of, kind_of, place_of
from attention.choose.prediction import Efficiency
from attention.choose.rates import HOST
from attention.choose.sized import NONE_ALIKE, Alike, Near, Place, Places, Sized
from attention.problem import AttentionProblem
from attention.variant import Config, Variant

OWN_WORD = 0.1  # problems at hand that a prediction of ours counts for itself
PRIOR = 0.1  # problems at hand that the median of torch's kernel counts for
ALL = Config((("all", 0),))  # stands for the mean of a problem's configurations
MOST_KEPT = 64


Exact = tuple[str, Config, int, Kind]
Width = tuple[str, Config, int]


@dataclass(frozen=True)
class Corrections:
    """Efficiencies by what was timed. Empty where nothing was; `of_width` holds none of ours on a GPU, as none asks."""

    exact: Mapping[Exact, Sized] = field(default_factory=dict)
    of_width: Mapping[Width, Efficiency] = field(default_factory=dict)
    of_class: Mapping[str, Efficiency] = field(default_factory=dict)
    places: tuple[Place, ...] = ()
    _kept: dict[Place, Near] = field(default_factory=dict, compare=False, repr=False)

    def __bool__(self) -> bool:
        return bool(self.of_class)

    def nearest(self, variant: Variant, config: Config, problem: AttentionProblem) -> Efficiency | None:
        """On a GPU all problems of this key, by their distance, and a word beside them; of ours None without any.

        On a CPU, of this key the nearest size. Else what those of its head dim and number of queries showed, or any.
        """
        return next(self.of_each(variant, (config,), problem))

    def of_each(
        self, variant: Variant, configs: Iterable[Config], problem: AttentionProblem
    ) -> Iterator[Efficiency | None]:
        """The same of several configurations."""
        width, kind, here = variant.pads(problem.head_dim), kind_of(variant, problem), place_of(variant, problem)
        alike, by_schedule = self._by_kind.get((variant.path, width, kind), NONE_ALIKE), _by_schedule(variant)
        of_all = alike.row.get(ALL)
        for config in configs:
            row = alike.row.get(config)
            if not by_schedule:
                yield self._of_kind(variant, config, problem, alike, row)
            else:
                yield None if of_all is None else self._of_ours(alike, of_all, row, here)

    def _of_kind(
        self, variant: Variant, config: Config, problem: AttentionProblem, alike: Alike, row: int | None
    ) -> Efficiency | None:
        """Of a kernel of torch's, or on a CPU."""
        width, kind, here = variant.pads(problem.head_dim), kind_of(variant, problem), place_of(variant, problem)
        if row is not None and HOST in variant.archs:
            sized = alike.keys[row]
            places = [self.places[each] for each in sized.at]
            return sized.efficiency(min(range(len(places)), key=lambda at: (math.dist(places[at], here), places[at])))
        of_class = self.of_class.get(class_of(variant, problem))
        found = self.of_width.get((_crowd(variant, kind), config, width)) or of_class
        if row is not None and found:
            return self._weighed(alike, row, here, found.value, PRIOR)
        return found

    def _of_ours(self, alike: Alike, of_all: int, row: int | None, here: Place) -> Efficiency:
        """What all configurations showed, and what one of them differs by."""
        rows = (of_all,) if row is None else (of_all, row)
        near = self._near(here).of(alike)
        off = sum(near.logs[each] / (near.together[each] + OWN_WORD) for each in rows)
        return Efficiency(_figure(math.exp(off)), 0 if row is None else alike.keys[row].seen, near=row is not None)

    def _weighed(self, alike: Alike, row: int, here: Place, word: float, weight: float) -> Efficiency:
        """The mean of the logarithms of problems, and of a word beside them."""
        near = self._near(here).of(alike)
        off = near.logs[row] + weight * math.log(word)
        return Efficiency(_figure(math.exp(off / (near.together[row] + weight))), alike.keys[row].seen, near=True)

    def _near(self, here: Place) -> Near:
        found = self._kept.get(here)
        if found is None:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            found = self._kept[here] = Near(here, self._grid)
        return found

    @cached_property
    def _by_kind(self) -> dict[tuple[str, int, Kind], Alike]:
        """The exact ones once more: all configurations of a variant are asked about one kind."""
        found: dict[tuple[str, int, Kind], dict[Config, Sized]] = {}
        for (variant, config, width, kind), sized in self.exact.items():
            found.setdefault((variant, width, kind), {})[config] = sized
        return {key: Alike(of) for key, of in found.items()}

    @cached_property
    def _grid(self) -> Places:
        """The places as an array: distances to all of them are taken at once."""
        return np.array(self.places, dtype=np.int64)

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
    exact: dict[Exact, dict[Place, list[Observation]]] = {}
    widths: dict[Width, list[Observation]] = {}
    classes: dict[str, list[Observation]] = {}
    observed = tuple(_once(observations))
    for each in observed:
        classes.setdefault(class_of(each.variant, each.problem), []).append(each)
    for each in _apart(observed):
        variant, problem = each.variant, each.problem
        width, kind = variant.pads(problem.head_dim), kind_of(variant, problem)
        sizes = exact.setdefault((variant.path, each.config, width, kind), {})
        sizes.setdefault(place_of(variant, problem), []).append(each)
        if not _by_schedule(variant):
            widths.setdefault((_crowd(variant, kind), each.config, width), []).append(each)
    places = tuple(sorted({place for sizes in exact.values() for place in sizes}))
    number = {place: at for at, place in enumerate(places)}
    return Corrections(
        {key: _sized(sizes, number) for key, sizes in exact.items()},
        {key: _median(found) for key, found in widths.items()},
        {key: _median(found) for key, found in classes.items()},
        places,
    )


def _apart(observations: Iterable[Observation]) -> Iterator[Observation]:
    """Of ours what a problem's configurations differ by from their mean, and that mean under ALL."""
    together: dict[tuple[str, AttentionProblem], list[Observation]] = {}
    for each in observations:
        if _by_schedule(each.variant):
            together.setdefault((each.variant.path, each.problem), []).append(each)
        else:
            yield each
    for found in together.values():
        mean = math.exp(math.fsum(math.log(each.predicted_over_measured) for each in found) / len(found))
        yield replace(found[0], config=ALL, predicted_over_measured=mean)
        yield from (replace(each, predicted_over_measured=each.predicted_over_measured / mean) for each in found)


def _once(observations: Iterable[Observation]) -> Iterator[Observation]:
    """On a GPU each problem once for a configuration, by its median: campaigns time some again and again."""
    seen: dict[tuple[str, Config, AttentionProblem], list[Observation]] = {}
    for each in observations:
        if HOST in each.variant.archs:
            yield each
        else:
            seen.setdefault((each.variant.path, each.config, each.problem), []).append(each)
    for found in seen.values():
        ratio = statistics.median(each.predicted_over_measured for each in found)
        yield replace(found[0], predicted_over_measured=ratio)


def _sized(sizes: Mapping[Place, list[Observation]], number: Mapping[Place, int]) -> Sized:
    found = {number[place]: _median(of) for place, of in sorted(sizes.items())}
    values, timings = (tuple(getattr(each, name) for each in found.values()) for name in ("value", "timings"))
    return Sized(tuple(found), values, timings, next(iter(found.values())).overhead_seconds)


def _by_schedule(variant: Variant) -> bool:
    """Whether it is predicted by what its warps do: a kernel of ours on a GPU."""
    return variant.owner == "smscope" and HOST not in variant.archs


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
