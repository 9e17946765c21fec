"""The slow path on a GPU: torch operations, piece by piece, with every feature.

Nothing is predicted: it runs where nothing else can, and a bound of its traffic would flatter it.
"""

from attention.problem import FEATURE_WORDS, AttentionProblem
from attention.variant import Variant
from microbench.arch import Arch


def refuses(problem: AttentionProblem, arch: Arch) -> str | None:
    """Nothing is refused."""
    return None


def notes(problem: AttentionProblem) -> tuple[str, ...]:
    """Who draws random numbers, and what waits for the device."""
    said = ["scores are computed in pieces of at most 4 Mi, each with about ten passes over memory"]
    if problem.dropout_p > 0:
        said.append("with dropout, torch.nn.functional.scaled_dot_product_attention itself serves the call")
    if problem.varlen:
        said.append("the lengths of packed sequences are read on the host, which waits for the device")
    return tuple(said)


VARIANT = Variant(
    summary="the slow path: torch operations in float32, piece by piece; runs where nothing else can",
    owner="torch",
    archs=("sm70", "sm75", "sm80", "sm86", "sm89", "sm90a", "sm100a", "sm103a", "sm120a"),
    refuses=refuses,
    features=frozenset(FEATURE_WORDS),
    rank=4,
    fused=False,
    notes=notes,
)
