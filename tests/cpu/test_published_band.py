"""Every published forward of the generation inside the interval of its own shape, or listed with the reason."""

from collections import Counter

import pytest

from attention.choose.machine import named_machine
from attention.choose.published.band import band, best_of, boards_of, share_of
from attention.choose.published.figures import forwards, problem_of, shaped
from microbench.published.facts import AttentionFact
from microbench.results.profile import Profile

TORCHS_CALL = "timed through torch's call, which takes as long as a short forward"
MICROSECONDS = "at most 1024 tokens, where what a call costs beside its tiles is a part of it"
NO_OTHER = "no other source has this head dim in full"
SLOWER_BOARD = "a board whose name is inferred, slower at every length than those of other sources"
# What lies below the band of all other sources, by kernel, source and head dim.
BELOW = {
    ("cudnn (PyTorch)", "CUDNNFE", 128): TORCHS_CALL,
    ("cudnn", "CUDNNFE", 128): MICROSECONDS,
    ("FlashAttention-4", "FA4P2605", 64): NO_OTHER,
    ("cudnn", "FA4P2605", 64): NO_OTHER,
    ("FlashAttention-4", "FA4P2605", 128): SLOWER_BOARD,
    ("FlashAttention-4", "FA4P2280", 192): "2 % below the only other source's lowest",
}


def b200() -> Profile:
    profile = named_machine("b200").published
    assert profile is not None
    return profile


def figures() -> list[tuple[AttentionFact, float]]:
    found = [(fact, share_of(fact)) for fact in shaped(boards_of(b200()))]
    return [(fact, share) for fact, share in found if share is not None]


def test_every_published_forward_lies_inside_the_interval_of_its_own_shape() -> None:
    assert len(figures()) > 160
    for fact, share in figures():
        problem = problem_of(fact)
        assert problem is not None and best_of(fact) is not None
        found = band(b200(), problem)
        assert found is not None and found.low <= share <= found.high <= 1, fact


def test_what_lies_outside_the_band_of_all_other_sources_is_listed_with_its_reason() -> None:
    outside: Counter[tuple[str, str, int | None]] = Counter()
    for fact, share in figures():
        problem = problem_of(fact)
        assert problem is not None
        others = band(b200(), problem, without=fact.source)
        if others is None or not others.low <= share <= 1:
            assert others is None or share < others.low  # no kernel is faster than the terms allow
            outside[fact.kernel, fact.source, fact.head_dim] += 1
            assert fact.source != "CUDNNFE" or fact.kernel != "cudnn" or (fact.seqlen or 0) <= 1024
    assert set(outside) == set(BELOW) and sum(outside.values()) < len(figures()) / 4


@pytest.mark.parametrize("source", ["CUDNNFE", "FA4P2605", "FA4I2576", "FA4P2280"])
def test_a_source_alone_does_not_make_the_band(source: str) -> None:
    fact = next(fact for fact, _ in figures() if fact.source == source)
    problem = problem_of(fact)
    assert problem is not None
    without, whole = band(b200(), problem, without=source), band(b200(), problem)
    assert without is not None and whole is not None and source not in without.sources
    assert source in whole.sources


def test_a_figure_without_a_shape_or_of_another_operation_takes_no_part() -> None:
    every = set(map(id, shaped(boards_of(b200()))))
    for fact in forwards(boards_of(b200())):
        assert (id(fact) in every) == bool(fact.head_dim and fact.seqlen and fact.batch and fact.heads)
        assert not {"sliding-window", "softmax-free-variant", "time-only"} & set(fact.flags)
