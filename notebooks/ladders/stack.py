"""A prediction as layers, one on another: what counts, and what runs beside it without counting.

Terms of a phase overlap, so that the longest counts; phases follow one another; memory runs beside them, and counts
instead where it takes longer, but for what an SM does before the first loads and behind the last; what loads wait in a
queue, what comes before the first product and after the last comes on top.
"""

from dataclasses import dataclass

from attention.choose.prediction import SECONDS, Prediction, Term

MEMORY, ON_TOP = "memory", ("queue", "start", "launch")
ALONE, LEAST = "before the first loads, behind the last", 1e-9


@dataclass(frozen=True)
class Layer:
    """A term that begins after the seconds of those that count before it. One of no duration is no layer."""

    name: str
    begin: float
    seconds: float
    counts: bool
    constant: str

    @property
    def end(self) -> float:
        return self.begin + self.seconds


def layers(prediction: Prediction) -> tuple[Layer, ...]:
    """All terms; those that count end where the prediction of constants alone does."""
    phases: dict[str, list[Term]] = {}
    for term in prediction.terms:
        if term.seconds > 0:
            phases.setdefault(term.phase, []).append(term)
    memory = phases.pop(MEMORY, [])
    on_top = [term for phase in ON_TOP for term in phases.pop(phase, [])]
    busy = sum(max(map(SECONDS, terms)) for terms in phases.values())
    slowest = max(map(SECONDS, memory), default=0.0)
    both = prediction.seconds - sum(map(SECONDS, on_top))
    by_memory = both > busy + LEAST * both
    alone = both - slowest if by_memory else 0.0
    found = [Layer(ALONE, 0.0, alone, True, "")] if alone else []
    found += [_layer(term, alone, by_memory and term.seconds == slowest) for term in memory]
    at = 0.0
    for terms in phases.values():
        longest = max(terms, key=SECONDS)
        found += [_layer(term, at, not by_memory and term is longest) for term in terms]
        at += longest.seconds
    at = both
    for term in on_top:
        found.append(_layer(term, at, True))
        at += term.seconds
    return tuple(found)


def _layer(term: Term, begin: float, counts: bool) -> Layer:
    return Layer(term.term, begin, term.seconds, counts, term.constant)


def gathered(found: tuple[Layer, ...], least: float) -> tuple[Layer, ...]:
    """Those of at least so many seconds, in order; the rest that counts as one, placed where its first begins.

    What does not count and is shorter goes.
    """
    large = [each for each in found if each.seconds >= least]
    small = [each for each in found if each.seconds < least and each.counts]
    total, at = sum(each.seconds for each in small), 0.0
    moved: list[Layer] = []
    for each in large:
        before = sum(other.seconds for other in small if other.begin < each.begin)
        moved.append(Layer(each.name, each.begin - before, each.seconds, each.counts, each.constant))
        at = max(at, moved[-1].end if each.counts else at)
    return (*moved, Layer(f"{len(small)} shorter terms", at, total, True, "")) if small else tuple(moved)
