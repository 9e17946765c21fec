"""A band of keys about the diagonal: what causality and a sliding window come to (attention.band)."""

import math
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from attention.band import Band, window_of
from attention.feature import Argument, Array, At, Define, Device, Feature, Field, Problem, Word

if TYPE_CHECKING:
    import numpy as np

FULL = (-1, -1)


def _left(problem: Problem, _: float) -> int:
    return _edges(problem).left or 0


def _right(problem: Problem, _: float) -> int:
    return _edges(problem).right or 0


def _edges(problem: Problem) -> Band:
    """Where sequences have their own lengths a kernel moves both edges: it is told where they are on the diagonal."""
    found: Band = problem.edges if problem.own_lengths else problem.band()
    return found


class Banded(Feature):
    order = 10
    words = (
        Word(
            "bottom-right causality",
            lambda problem: problem.alignment == "bottom_right",
            (("aligned top-left", {"alignment": "top_left"}),),
        ),
        Word("sliding window", lambda problem: problem.window != FULL, (("without a window", {"window": FULL}),)),
    )
    # Keys left and right of the diagonal that are seen; -1 is all. Which corner the diagonal ends in.
    fields = (("causal", False), ("alignment", "top_left"), ("window", FULL))
    arguments = (
        Argument("causal", "bool", False),
        Argument("bottom_right", "bool", False),
        Argument("window_left", "int", -1),
        Argument("window_right", "int", -1),
    )
    device = Device(
        serves=("bottom-right causality", "sliding window"),
        defines=(
            Define("CAUSAL", lambda problem: problem.edges.right is not None, share=0.6, crowds=False),
            Define("WINDOW", lambda problem: problem.edges.left is not None, share=0.3),
        ),
        fields=(
            Field("right", "int", _right),
            Field("left", "int", _left),
            Field("moves", "int", lambda problem, _: int(problem.alignment == "bottom_right")),
        ),
    )

    def of_call(self, options: Any, given: dict[str, Any]) -> dict[str, Any]:
        alignment = "bottom_right" if options.bottom_right else "top_left"
        window = (options.window_left, options.window_right)
        return {"causal": options.causal, "alignment": alignment, "window": window}

    def checked(self, problem: Problem) -> dict[str, Any]:
        """A window without keys to the right is causal, an edge that hides nothing is none, and a square top-left."""
        if not problem.causal and problem.window == FULL:
            return {"alignment": "top_left"}
        left, right = window_of(problem.window)
        right = 0 if problem.causal else right
        edges = Band(-left if left >= 0 else None, right if right >= 0 else None)
        tight = edges.tightened(problem.alignment, problem.seq_q, problem.seq_kv)
        square = tight.open or (problem.seq_q == problem.seq_kv and not problem.own_lengths)
        return {
            "causal": tight.right == 0,
            "window": (-1 if tight.left is None else -tight.left, tight.right or -1),
            "alignment": "top_left" if square else problem.alignment,
        }

    def told(self, problem: Problem) -> tuple[str, ...]:
        words = ["causal" if problem.causal else "full"]
        words += ["bottom-right"] if problem.alignment == "bottom_right" else []
        words += [f"window={problem.window[0]},{problem.window[1]}"] if problem.window != FULL else []
        return tuple(words)

    def oracle_hides(self, at: At, asked: Any, *operands: Array) -> Array | None:
        ahead = at.ahead if asked.alignment == "bottom_right" else at.key - at.query
        left, right = asked.window[0], 0 if asked.causal else asked.window[1]
        edges = ([ahead > right] if right >= 0 else []) + ([ahead < -left] if left >= 0 else [])
        return reduce(or_, edges) if edges else None

    def hide(self, at: At, problem: Problem, *operands: Array) -> Array | None:
        band = problem.band(at.seq_q, at.seq_kv)
        right = None if band.right is None else at.key > at.query + band.right
        left = None if band.left is None else at.key < at.query + band.left
        return right if left is None else left if right is None else right | left

    def drawn(self, rng: "np.random.Generator", asked: frozenset[str]) -> dict[str, Any]:
        causal = "CAUSAL" in asked and rng.random() < 0.6
        left = _keys(rng) if "WINDOW" in asked else -1
        right = _keys(rng) if "CAUSAL" in asked and not causal else -1
        alignment = "bottom_right" if rng.random() < 0.5 else "top_left"
        return {"causal": causal, "window": (left, right), "alignment": alignment}


def _keys(rng: "np.random.Generator") -> int:
    """Keys to one side of the diagonal, 0 among them."""
    return int(math.exp(rng.random() * math.log(1500))) - 1


FEATURE = Banded()
