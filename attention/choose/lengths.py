"""Real lengths of a call's sequences, where somebody knows them.

A problem knows of packed sequences how many there are, their rows in all and the longest, and of slots of a cache that
they hold at most so many keys: a call's own lengths lie on the device, and reading them would wait for it. A campaign,
and who types them, knows them all. They are no part of a problem, whose identity stays what is on file.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from attention.problem import AttentionProblem


class Run(NamedTuple):
    """So many sequences, each of so many queries and keys."""

    many: int
    queries: int
    keys: int


Lengths = tuple[Run, ...]
UNKNOWN: Lengths = ()
GROUPS = 4  # of presumed lengths beside the longest


def counted(queries: Sequence[int], keys: Sequence[int]) -> Lengths:
    """The lengths of sequences as they follow one another, a number of each.

    Those without a query are left out, and those without a key have one.
    """
    pairs = ((rows, max(1, seen)) for rows, seen in zip(queries, keys, strict=True) if rows)
    return tuple(Run(sum(1 for _ in alike), *pair) for pair, alike in groupby(pairs))


def told(problem: AttentionProblem, rows: Sequence[int], used: Sequence[int]) -> Lengths:
    """As campaigns tell them: the rows of packed sequences, or the keys that each uses of its slot; else UNKNOWN."""
    return counted(rows or (problem.seq_q,) * len(used), rows or used)


@lru_cache(maxsize=1024)
def presumed(problem: AttentionProblem) -> Lengths:
    """What a call is taken for: UNKNOWN where a problem says its lengths, else spread between nothing and the longest.

    Of packed sequences the rows in all say how: the length of the share u of all is longest x u^p, whose mean is
    longest / (p + 1). Of slots of a cache nobody says, and any of them is as likely to be short as full.
    """
    if problem.ranges and not problem.varlen:
        return _evenly_full(problem)
    if not problem.varlen or problem.batch == 1:
        return UNKNOWN
    others = problem.batch - 1
    queries = _spread(problem.seq_q, problem.tokens_q - problem.seq_q, others)
    keys = _spread(problem.seq_kv, problem.tokens_kv - problem.seq_kv, others)
    return Run(1, problem.seq_q, problem.seq_kv), *map(Run, _dealt(others, len(keys)), queries, keys)


def _evenly_full(problem: AttentionProblem) -> Lengths:
    """Each group of slots by the middle of its share: one slot alone is half full.

    A lone slot that was taken as full had its keys split for two and more microseconds of work that was not there.
    """
    groups = min(GROUPS + 1, problem.batch)
    keys = (max(1, round(problem.seq_kv * (at + 0.5) / groups)) for at in reversed(range(groups)))
    return tuple(Run(many, problem.seq_q, each) for many, each in zip(_dealt(problem.batch, groups), keys, strict=True))


def _dealt(many: int, groups: int) -> list[int]:
    return [many * (at + 1) // groups - many * at // groups for at in range(groups)]


def _spread(longest: int, rest: int, others: int) -> list[int]:
    """The lengths of as many groups of the others, the longest first, that have `rest` in all."""
    groups = min(GROUPS, others)
    mean = max(1.0, rest / others)
    # Over the largest: of a longest one beside very short ones all others are nothing to a float.
    shares = [((at + 0.5) / (groups - 0.5)) ** max(0.0, longest / mean - 1) for at in range(groups)]
    scale = mean * groups / sum(shares)
    return [min(longest, max(1, round(scale * share))) for share in reversed(shares)]


@lru_cache(maxsize=1024)
def sequences(problem: AttentionProblem, lengths: Lengths = UNKNOWN) -> tuple[tuple[int, AttentionProblem], ...]:
    """How many sequences there are, and what one of them is alone.

    Of packed sequences whose lengths nobody knows one is taken as the longest, and the others share what is left.
    """
    alone = replace(problem, batch=1, varlen=False, tokens_q=0, tokens_kv=0) if problem.varlen else problem
    if lengths:
        each = replace(alone, batch=1)
        return tuple((run.many, replace(each, seq_q=run.queries, seq_kv=run.keys)) for run in lengths)
    if not problem.varlen:
        return ((problem.batch, problem),)
    others = problem.batch - 1
    if not others:
        return ((1, alone),)
    queries = max(1, round((problem.tokens_q - problem.seq_q) / others))
    keys = max(1, round((problem.tokens_kv - problem.seq_kv) / others))
    return (1, alone), (others, replace(alone, seq_q=min(queries, problem.seq_q), seq_kv=min(keys, problem.seq_kv)))
