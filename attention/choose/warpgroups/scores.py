"""What one score costs beside the products, by pipe: counts of instructions, by the features that are asked for."""

from dataclasses import dataclass

from attention.choose.warpgroups.coefficients import of
from attention.problem import AttentionProblem


@dataclass(frozen=True)
class ScoreCost:
    """Instructions a score: of MUFU, of the FP32 lanes, of the ALU; `waiting_loads` wait for each other in a thread.

    `edge` and `first` are what the ALU takes beside where a tile meets an edge of the band, and in a first tile.
    """

    special: float
    arithmetic: float
    integers: float
    waiting_loads: float
    edge: float
    first: float


def cost_of(problem: AttentionProblem) -> ScoreCost:
    """By the problem's features and band."""
    special, arithmetic, integers = of("exponentials"), of("arithmetic"), of("maxima")
    if problem.softcap:
        special += of("softcap_special")
        arithmetic += of("softcap_arithmetic")
    if problem.alibi:
        arithmetic += of("alibi_arithmetic")
        integers += of("alibi_integers")
    compared = of("edge_compared") * ((problem.edges.left is not None) + (problem.edges.right is not None))
    hidden = of("hidden") + of("hidden_maxima")
    return ScoreCost(
        special,
        arithmetic,
        integers,
        of("mask_loads") if problem.mask == "bool" else 0.0,
        hidden + compared,
        hidden + max(of("first_compared"), compared),
    )
