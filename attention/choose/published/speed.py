"""Our predicted speed as an interval, beside what others published of FlashAttention-4 and cuDNN.

high    every term at the boost clock, and the shorter ones wholly behind the longest: nothing is faster
low     the same at the lowest share of their own highest that published forwards most like it reach (published_band.py)

Both ends are a model's, and no GPU of the architecture has borne it out, while the figures were measured. So a figure
of the same head dim and mask is told as a share of our highest at its own shape, and never the other way round; where
they differ by more than a quarter, miss.py says what would have to change. A headline that tells no shape is
shown apart.
"""

from dataclasses import dataclass

from attention.choose.foreseen import Foreseen
from attention.choose.published.band import Band, band, best_of, profile_of, share_of
from attention.choose.published.cycles import Cycles, cycles_of
from attention.choose.published.figures import headlines, kind_of_profile, nearest, other_boards, problem_of
from attention.choose.published.miss import Miss, miss
from attention.choose.published.torchs import cited
from attention.problem import AttentionProblem
from attention.seen import flops_seen
from microbench.console.si import counted, digits, written
from microbench.published.facts import AttentionFact
from microbench.published.kinds import SM_CLOCK
from microbench.results.profile import Profile


@dataclass(frozen=True)
class Peer:
    """A published figure, its share of our highest at its own shape, and why they differ where they do by a quarter."""

    kernel: str
    flops_per_s: float
    figure: str
    source: str
    share: float | None = None
    miss: Miss | None = None

    def __str__(self) -> str:
        if self.share is None:
            return f"Beside {self.kernel}, compared with nothing: {self.figure}."
        highest = "the highest that the model allows ours at its shape, where ours has not run"
        said = f"Beside {self.kernel}: theirs was measured, and is {digits(self.share)} of {highest}. {self.figure}."
        return f"{said} {self.miss}" if self.miss else said


@dataclass(frozen=True)
class PublishedSpeed:
    """FLOP/s at least and at most, what the least rests on, cycles of a tile, and the peers' figures.

    Without a prediction there is no interval, and `unpredicted` names the constant; `high` is then what the known terms
    leave.
    """

    low: float | None
    high: float | None
    basis: str
    peers: tuple[Peer, ...]
    cycles: Cycles | None = None
    band: Band | None = None
    unpredicted: str | None = None

    def __str__(self) -> str:
        if self.unpredicted:
            most = f"; the terms that are known leave at most {written(self.high, 'FLOP/s')}" if self.high else ""
            return f"Predicted speed: unpredicted, because {self.unpredicted}{most}."
        assert self.high is not None
        least = f"{written(self.low, 'FLOP/s')} to " if self.low is not None else "at most "
        return f"Predicted, by a model that no such GPU bears out: {least}{written(self.high, 'FLOP/s')}; {self.basis}."


def speed(profile: Profile, problem: AttentionProblem, best: Foreseen) -> PublishedSpeed | None:
    """The interval of one configuration; None where nobody published a forward of the peers on such boards."""
    kind = kind_of_profile(profile)
    boards = kind.boards if kind else ()
    near = tuple(_peer(fact) for fact in nearest(problem, boards))
    elsewhere = () if near else tuple(_apart(fact) for fact in nearest(problem, other_boards(profile)))
    peers = (*near, *elsewhere, *(_headline(fact) for fact in headlines(boards)))
    high = flops_seen(problem) / best.known.seconds if best.known else None
    if best.prediction is None:
        return PublishedSpeed(None, high, "", peers, unpredicted=best.unpredicted) if peers else None
    assert high is not None
    found = band(profile, problem)
    if found is None and not peers:
        return None
    cycles = cycles_of(profile, problem, best.variant, best.config, best.prediction)
    return PublishedSpeed(found.low * high if found else None, high, _basis(profile, found), peers, cycles, found)


def _basis(profile: Profile, found: Band | None) -> str:
    at = f" of {written(profile[SM_CLOCK].value, 'MHz')}" if SM_CLOCK in profile else ""
    highest = f"the highest at the boost clock{at} with every term behind the longest"
    if found is None:
        return f"{highest}; too few published forwards for a lowest"
    return (
        f"{highest}, the lowest at {digits(found.low)} of it, the least that any of "
        f"{counted(found.figures, 'published forward')} of {found.like} reaches of its own highest ({found.lowest}); "
        f"the most is {digits(found.high)} ({', '.join(found.sources)})"
    )


def _peer(fact: AttentionFact) -> Peer:
    theirs, share = (fact.tflops or 0.0) * 1e12, share_of(fact)
    best, problem, profile = best_of(fact), problem_of(fact), profile_of(fact.gpu)
    if share is None or best is None or best.prediction is None or problem is None or profile is None:
        return _apart(fact)
    cycles = cycles_of(profile, problem, best.variant, best.config, best.prediction)
    why = miss(fact.gpu, problem.flops / theirs, best.prediction.seconds, cycles) if cycles else None
    return Peer(fact.kernel, theirs, _said(fact), fact.source, share, why)


def _apart(fact: AttentionFact) -> Peer:
    return Peer(fact.kernel, (fact.tflops or 0.0) * 1e12, _said(fact), fact.source)


def _headline(fact: AttentionFact) -> Peer:
    theirs = (fact.tflops or 0.0) * 1e12
    told = f"a headline of {written(theirs, 'FLOP/s')} that tells no shape: {fact.conditions} ({fact.source})"
    return Peer(fact.kernel, theirs, told, fact.source)


def _said(fact: AttentionFact) -> str:
    return f"{cited(fact)}; {fact.conditions}" if fact.conditions else cited(fact)
