"""What one score costs beside the products, by pipe: counts of instructions, by the features that are asked for."""

from functools import lru_cache
from typing import NamedTuple

from attention.choose.coefficients.table import of
from attention.choose.guesses import behind_the_diagonal
from attention.features.mask import WIDE, element_bytes
from attention.problem import AttentionProblem


class ScoreCost(NamedTuple):  # hashed and compared in C: blocks and steps are looked up by it
    """Instructions a score: of MUFU, of the FP32 lanes, of the ALU; `waiting_loads` wait for each other in a thread.

    `maxima` are of the ALU too, where a tile is searched for its largest scores. `mask_bytes` are those of a mask, 0
    without one. The band has so many `edges`. `edge` and `first` are what the ALU takes beside where a tile meets one,
    and in a first tile. `distances` are those of FP32 that come before all exponentials of a tile. Of `slopes` heads
    scores grow towards the diagonal, behind which the share `behind` of all tiles lies (guesses.py). `rescales`: a
    warpgroup searches every tile and rescales its outputs, as beside a mask that no TMA brings.
    """

    special: float
    arithmetic: float
    integers: float
    maxima: float
    waiting_loads: float
    mask_bytes: int
    edges: int
    edge: float
    first: float
    distances: float
    slopes: int
    behind: float
    rescales: bool


@lru_cache  # every candidate of a choice asks
def cost_of(problem: AttentionProblem) -> ScoreCost:
    """By the problem's features and band."""
    special, arithmetic, integers, maxima = of("exponentials"), of("arithmetic"), 0.0, of("maxima")
    if problem.softcap:
        special += of("softcap_special")
        arithmetic += of("softcap_arithmetic")
    distances = of("alibi_arithmetic") if problem.alibi else 0.0
    arithmetic += distances
    grows = problem.alibi and problem.edges.right is None
    waits = 0.0
    if problem.mask != "none":
        maxima += of("hidden_maxima")
        waits = of("wide_mask_waits") if problem.mask_dtype == WIDE else of("mask_waits")
    if problem.mask == "bool":
        integers += of("mask_tests") + of("hidden")
    elif problem.mask == "float":
        arithmetic += of("bias_arithmetic")
        integers += 0.0 if problem.mask_dtype == WIDE else of("bias_integers")
    edges = (problem.edges.left is not None) + (problem.edges.right is not None)
    compared = of("edge_compared") * edges
    hidden = of("hidden") + of("hidden_maxima")
    return ScoreCost(
        special,
        arithmetic,
        integers,
        maxima,
        waits,
        element_bytes(problem),
        edges,
        hidden + compared,
        hidden + max(of("first_compared"), compared),
        distances,
        problem.heads_q if grows else 0,
        behind_the_diagonal(problem) if grows else 0.0,
        problem.mask != "none" and problem.ranges,
    )
