"""Torch's attention in single operations on a GPU: serves everything, with all scores in memory, several times over.

Nothing is predicted: it runs where nothing else can, and a bound of its traffic would flatter it.
"""

from attention.problem import AttentionProblem
from attention.variant import Variant
from microbench.arch import Arch


def refuses(problem: AttentionProblem, arch: Arch) -> str | None:
    """Nothing is refused."""
    return None


VARIANT = Variant(
    summary="torch: single operations, all scores in memory; runs where nothing else can",
    owner="torch",
    archs=("sm70", "sm75", "sm80", "sm86", "sm89", "sm90a", "sm100a", "sm103a", "sm120a"),
    refuses=refuses,
    rank=4,
)
