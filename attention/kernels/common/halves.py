"""More value columns than a kernel holds: the same problem twice, each launch of half the columns of V and of out.

512 columns of outputs are twice what the registers of 64 rows hold. Q, K and all features are those of the call, so
that scores are computed twice, and lse follows from either. Both launches are of one build: halves are as wide, a
multiple of 16, and where that leaves some over they overlap in 16 columns, which the second writes again.

Who asks a kernel for its tile, registers or builds is told of one launch; a prediction is that of two. No torch here.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from attention.kernels.common.family import HEAD_DIMS, MOST_VALUES, STEP
from attention.problem import AttentionProblem
from attention.variant import Lasting, Settled, Variant

HELD = HEAD_DIMS[-1]  # value columns


def half_of(problem: AttentionProblem) -> AttentionProblem:
    """The problem of each of two launches; itself where one launch holds all value columns, or two do not."""
    return problem if problem.head_dim_v <= HELD else _half_of(problem)


@lru_cache(maxsize=64)  # every candidate of a choice asks
def _half_of(problem: AttentionProblem) -> AttentionProblem:
    if problem.head_dim_v > MOST_VALUES or problem.head_dim_v % STEP:
        return problem
    return replace(problem, head_dim_v=-(-problem.head_dim_v // (2 * STEP)) * STEP)


def in_halves(variant: Variant) -> Variant:
    """The same kernel, which serves up to twice the value columns that it holds, by two launches."""
    notes = variant.notes

    def told(problem: AttentionProblem) -> tuple[str, ...]:
        half = half_of(problem)
        said = (
            f"value dim {problem.head_dim_v} takes two launches, one after the other, each of {half.head_dim_v} "
            "columns of V and out: scores are computed twice",
        )
        return notes(half) if half is problem else (*notes(half), *said)

    asked: dict[str, Any] = {
        name: _of_half(formula)
        for name in ("refuses", "illegal", "tile", "residents", "builds", "workspace")
        if (formula := getattr(variant, name)) is not None
    }
    settled, lasting = tuple(map(_settled, variant.settled)), variant.lasting and _lasting(variant.lasting)
    return replace(variant, **asked, settled=settled, lasting=lasting, notes=told, launch_of=half_of)


def _of_half(formula: Callable[..., Any]) -> Callable[..., Any]:
    return lambda problem, *others, **named: formula(half_of(problem), *others, **named)


def _lasting(part: Lasting) -> Lasting:
    return replace(part, stands_for=_of_half(part.stands_for))


def _settled(choice: Settled) -> Settled:
    return replace(choice, rule=_of_half(choice.rule), concerns=_of_half(choice.concerns))
