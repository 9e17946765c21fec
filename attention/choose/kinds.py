"""Problems alike: which kind one is of, whose timings count for it, and where it lies among those.

A place is a point whose coordinates are octaves: of many queries these, the keys and the heads of all sequences. Of few
it is the rows that the heads of a group share, and the heads of K and V, as these decide which blocks there are. What a
score costs beside, by a mask, a softcap or ALiBi, lies APART octaves away in a direction of its own: others say
something of it still, and less.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

from attention.choose.rates import HOST
from attention.choose.sized import STEPS, Place
from attention.problem import AttentionProblem
from attention.variant import FEW_QUERIES, Variant

APART = 3  # of 1, 2 and 3 octaves the best: corrections
FEW_ON_HOST = 32  # less than a panel of our CPU kernel, whose lanes are queries


@dataclass(frozen=True)
class Kind:
    """What decides which code runs and what keeps it busy: the edges of the band, packing, and how many queries."""

    left: bool
    right: bool
    packed: bool
    queries: str  # 'one', 'few' or 'many'
    dtype: str = ""  # on the CPU


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


def place_of(variant: Variant, problem: AttentionProblem) -> Place:
    """Where a problem lies among those of its kind, in steps: on a CPU by its keys alone, in whole octaves."""
    return _place(problem, HOST in variant.archs)


@lru_cache(maxsize=64)  # every candidate of a choice asks
def _place(problem: AttentionProblem, on_host: bool) -> Place:
    queries, keys = problem.mean_lengths
    if on_host:
        return (STEPS * round(math.log2(keys)),)
    group = problem.heads_q // problem.heads_kv if queries <= FEW_QUERIES else 1
    sizes = queries * group, keys, problem.batch * problem.heads_q // group
    beside = problem.mask == "bool", problem.mask == "float", problem.softcap > 0, problem.alibi
    return (*(round(STEPS * math.log2(max(1, each))) for each in sizes), *(APART * STEPS * each for each in beside))
