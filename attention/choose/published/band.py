"""How much of our highest prediction published kernels reach: the band that the low end of an interval rests on.

Each published forward of FlashAttention-4 or cuDNN, on any board of the architecture whose kind has constants, is
divided by what our first configuration is predicted to reach at most at that figure's own shape on its own board. The
tile is theirs too: 256 rows by 128 keys. The lowest such share among the figures most like the problem is the low end:
every one of them was reached by a kernel that somebody runs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from attention.choose.candidates import legal
from attention.choose.foreseen import Foreseen, foreseen, order
from attention.choose.published.figures import of_head_dim, other_boards, problem_of, shaped
from attention.choose.published.torchs import OCTAVE, octaves
from attention.problem import AttentionProblem
from attention.variant import shipped
from microbench.machine.arch import by_name
from microbench.published import load
from microbench.published.facts import AttentionFact
from microbench.published.kinds import of_kind
from microbench.results.profile import Profile

OURS = "smscope"
FEWEST = 3  # figures that a band may rest on


@dataclass(frozen=True)
class Band:
    """The lowest and the highest share that `figures` published forwards reach, and which are meant."""

    low: float
    high: float
    figures: int
    lowest: str
    like: str
    sources: tuple[str, ...]


def band(profile: Profile, problem: AttentionProblem, without: str = "") -> Band | None:
    """Of the figures most like the problem; `without` leaves out a source. None where no three can be predicted."""
    every = [(fact, share) for fact, share in _shares(profile) if fact.source != without]
    for like, chosen in _likenesses(problem):
        found = [(share, fact) for fact, share in every if chosen(fact)]
        if len(found) >= FEWEST:
            share, fact = min(found, key=lambda each: each[0])
            sources = tuple(dict.fromkeys(each.source for _, each in found))
            lowest = f"{fact.kernel}, {fact.seqlen} tokens on {fact.gpu}, {fact.source}"
            return Band(share, max(each for each, _ in found), len(found), lowest, like, sources)
    return None


def _likenesses(problem: AttentionProblem) -> Iterator[tuple[str, Callable[[AttentionFact], bool]]]:
    near: Callable[[AttentionFact], bool] = lambda fact: octaves(problem, fact) <= OCTAVE  # noqa: E731
    mask: Callable[[AttentionFact], bool] = lambda fact: fact.causal == problem.causal  # noqa: E731
    dim: Callable[[AttentionFact], bool] = lambda fact: of_head_dim(problem, fact)  # noqa: E731
    yield "this head dim and mask within an octave", lambda fact: near(fact) and mask(fact) and dim(fact)
    yield "this head dim within an octave", lambda fact: near(fact) and dim(fact)
    yield "this mask within an octave, at any head dim", lambda fact: near(fact) and mask(fact)
    yield "any head dim, mask and length", lambda _: True


@cache
def best_of(fact: AttentionFact) -> Foreseen | None:
    """Our first configuration at the figure's own shape; None where it cannot be predicted."""
    profile, problem = profile_of(fact.gpu), problem_of(fact)
    return first(profile, problem) if profile is not None and problem is not None else None


def first(profile: Profile, problem: AttentionProblem) -> Foreseen | None:
    ours = tuple(each for each in shipped("forward") if each.owner == OURS)
    allowed, _ = legal(problem, by_name(profile.arch), ours)
    found = min((foreseen(profile, problem, *each) for each in allowed), key=order, default=None)
    return found if found is not None and found.prediction is not None else None


@cache
def profile_of(board: str) -> Profile | None:
    """The published constants of the kind that a board is of."""
    return next((of_kind(kind) for kind in load().kinds if board in kind.boards), None)


def share_of(fact: AttentionFact) -> float | None:
    """What the figure reaches of our highest at its own shape."""
    best, problem = best_of(fact), problem_of(fact)
    if best is None or best.prediction is None or problem is None:
        return None
    return (fact.tflops or 0.0) * 1e12 * best.prediction.seconds / problem.flops


def _shares(profile: Profile) -> Iterator[tuple[AttentionFact, float]]:
    return iter(_shares_of(profile.gpu, boards_of(profile)))


@cache
def _shares_of(_: str, boards: tuple[str, ...]) -> tuple[tuple[AttentionFact, float], ...]:
    found = ((fact, share_of(fact)) for fact in shaped(boards))
    return tuple((fact, share) for fact, share in found if share is not None)


def boards_of(profile: Profile) -> tuple[str, ...]:
    own = next((kind.boards for kind in load().kinds if kind.kind == profile.gpu), ())
    return (*own, *other_boards(profile))
