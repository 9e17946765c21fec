"""Our predicted speed as an interval, beside what others published of FlashAttention-4 and cuDNN on the same kind.

high    every term at the boost clock, and the shorter ones wholly behind the longest: nothing is faster
low     the same at the share of the tensor cores' rate that the fastest published product of two matrices reaches on
        these boards: what power and a real pipeline leave where nothing but products is done

A published figure that `high` misses by more than MISS gets the reason that these numbers give.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from attention.choose.model import Prediction
from attention.choose.published_torch import HALF, OCTAVE, OTHER_KINDS_OF_ROW, cited, octaves
from attention.problem import AttentionProblem
from microbench.console.si import digits, written
from microbench.published import load
from microbench.published.facts import UNTRUSTED, AttentionFact, Fact
from microbench.published.kinds import SM_CLOCK
from microbench.results.profile import Profile

PEERS = ("FlashAttention-4", "cudnn", "cudnn (PyTorch)")
MISS = 0.25
PRODUCT = "gemm_bf16_tflops"
RATE = "_burst_flops_per_s"


@dataclass(frozen=True)
class Peer:
    """A published figure, `high` over it, and why they differ by more than MISS; '' where they do not."""

    kernel: str
    flops_per_s: float
    ratio: float
    figure: str
    why: str

    def __str__(self) -> str:
        said = f"Beside {self.kernel}: our highest is {digits(self.ratio)} times theirs. {self.figure}."
        return f"{said} {self.why}" if self.why else said


@dataclass(frozen=True)
class PublishedSpeed:
    """FLOP/s at least and at most, what the least rests on, and the peers' figures."""

    low: float
    high: float
    basis: str
    peers: tuple[Peer, ...]

    def __str__(self) -> str:
        return f"Predicted: {written(self.low, 'FLOP/s')} to {written(self.high, 'FLOP/s')}; {self.basis}."


def speed(profile: Profile, problem: AttentionProblem, prediction: Prediction) -> PublishedSpeed | None:
    """The interval of one prediction; None where nobody published a product of two matrices on these boards."""
    term = next((term for term in prediction.terms if term.constant.endswith(RATE)), None)
    product = max(_products(profile), key=lambda fact: fact.value or 0.0, default=None)
    if term is None or product is None or product.value is None:
        return None
    share = min(1.0, product.value * 1e12 / term.rate)
    high = problem.flops / prediction.seconds
    at = f" of {written(profile[SM_CLOCK].value, 'MHz')}" if SM_CLOCK in profile else ""
    basis = (
        f"the highest at the boost clock{at} with every term behind the longest, the lowest at {digits(share)} of it, "
        f"the share of the tensor cores' rate that the fastest published product of two matrices reaches there "
        f"({written(product.value * 1e12, 'FLOP/s')}, {product.source} {product.locator})"
    )
    low = share * high
    return PublishedSpeed(
        low, high, basis, tuple(_peer(fact, problem, low, high) for fact in _figures(profile, problem))
    )


def _peer(fact: AttentionFact, problem: AttentionProblem, low: float, high: float) -> Peer:
    theirs = (fact.tflops or 0.0) * 1e12
    ratio, why = high / theirs, ""
    if abs(ratio - 1) > MISS:
        inside = low <= theirs <= high
        why = (
            "The clock, and what does not overlap, may be the miss: theirs lies within our interval."
            if inside
            else "Theirs lies outside of our interval: terms alone do not tell why."
        )
    figure = cited(fact) if fact.head_dim else f"The figure tells no shape: {fact.conditions} ({fact.source})"
    return Peer(fact.kernel, theirs, ratio, figure, why)


def _boards(profile: Profile) -> tuple[str, ...]:
    return next((kind.boards for kind in load().kinds if kind.kind == profile.gpu), ())


def _products(profile: Profile) -> Iterator[Fact]:
    boards = _boards(profile)
    return (fact for fact in load().facts if fact.quantity == PRODUCT and fact.gpu in boards and fact.trusted)


def _figures(profile: Profile, problem: AttentionProblem) -> Iterator[AttentionFact]:
    """Of each peer the nearest length, of equals the fastest; where it tells no shape at all, its headline."""
    boards = _boards(profile)
    mine = [
        fact
        for fact in load().attention
        if fact.gpu in boards
        and fact.pass_ == "fwd"
        and fact.dtype in HALF
        and fact.tflops
        and not (UNTRUSTED | OTHER_KINDS_OF_ROW).intersection(fact.flags)
    ]
    for name in PEERS:
        of_shape = [fact for fact in mine if fact.kernel == name and _alike(problem, fact)]
        headlines = [fact for fact in mine if fact.kernel == name and fact.head_dim is None and fact.seqlen is None]
        if of_shape:
            yield min(of_shape, key=lambda fact: (octaves(problem, fact), -(fact.tflops or 0.0)))
        elif headlines:
            yield max(headlines, key=lambda fact: fact.tflops or 0.0)


def _alike(problem: AttentionProblem, fact: AttentionFact) -> bool:
    same = (fact.head_dim, fact.head_dim_v or fact.head_dim) == (problem.head_dim, problem.head_dim_v)
    return same and fact.causal == problem.causal and bool(fact.seqlen) and octaves(problem, fact) <= OCTAVE
