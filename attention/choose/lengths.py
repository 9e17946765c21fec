"""Real lengths of a call's sequences, where somebody knows them.

A problem knows of packed sequences how many there are, their rows in all and the longest, and of slots of a cache that
they hold at most so many keys: a call's own lengths lie on the device, and reading them would wait for it. A campaign,
and who types them, knows them all. They are no part of a problem, whose identity stays what is on file.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from attention.problem import AttentionProblem


class Run(NamedTuple):
    """So many sequences, each of so many queries and keys."""

    many: int
    queries: int
    keys: int


Lengths = tuple[Run, ...]
UNKNOWN: Lengths = ()


def counted(queries: Sequence[int], keys: Sequence[int]) -> Lengths:
    """The lengths of sequences, a number of each: those without a query are left out, those without a key have one."""
    pairs = Counter((rows, max(1, seen)) for rows, seen in zip(queries, keys, strict=True) if rows)
    return tuple(Run(many, *pair) for pair, many in sorted(pairs.items(), reverse=True))


def told(problem: AttentionProblem, rows: Sequence[int], used: Sequence[int]) -> Lengths:
    """As campaigns tell them: the rows of packed sequences, or the keys that each uses of its slot; else UNKNOWN."""
    return counted(rows or (problem.seq_q,) * len(used), rows or used)


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
