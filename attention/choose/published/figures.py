"""What others published of FlashAttention-4's and cuDNN's forward: figures with a shape, and headlines without one.

A figure is set beside a problem where it is of its head dims and mask, in half precision, at lengths within an octave.
One that tells no shape is a headline: it is shown apart and compared with nothing. Of a board that was inferred, the
figure waits behind one whose source names it, and its conditions say what it was inferred from.
"""

from collections.abc import Iterator

from attention.choose.published.torchs import HALF, OCTAVE, OTHER_KINDS_OF_ROW, octaves
from attention.problem import AttentionProblem
from microbench.published import load
from microbench.published.facts import UNTRUSTED, AttentionFact, Kind
from microbench.results.profile import Profile

PEERS = ("FlashAttention-4", "cudnn", "cudnn (PyTorch)")
INFERRED = "gpu-inferred"
LEFT_OUT = (UNTRUSTED | OTHER_KINDS_OF_ROW) - {INFERRED}


def kind_of_profile(profile: Profile) -> Kind | None:
    return next((kind for kind in load().kinds if kind.kind == profile.gpu), None)


def forwards(boards: tuple[str, ...]) -> Iterator[AttentionFact]:
    """Every published forward of the peers in half precision on these boards."""
    for fact in load().attention:
        mine = fact.gpu in boards and fact.kernel in PEERS and fact.pass_ == "fwd" and fact.dtype in HALF
        if mine and fact.tflops and not LEFT_OUT.intersection(fact.flags):
            yield fact


def shaped(boards: tuple[str, ...]) -> Iterator[AttentionFact]:
    """Those of them whose shape is told whole, so that they can be predicted themselves."""
    return (fact for fact in forwards(boards) if problem_of(fact) is not None)


def problem_of(fact: AttentionFact) -> AttentionProblem | None:
    """The problem that the figure is of; None where its source does not tell it whole."""
    if not (fact.head_dim and fact.seqlen and fact.batch and fact.heads) or fact.causal is None:
        return None
    return AttentionProblem(
        fact.batch,
        fact.heads,
        fact.kv_heads or fact.heads,
        fact.seqlen,
        fact.kv_seqlen or fact.seqlen,
        fact.head_dim,
        fact.head_dim_v or fact.head_dim,
        causal=fact.causal,
        dtype="float16" if fact.dtype == "fp16" else "bfloat16",
    ).on("cuda")


def alike(problem: AttentionProblem, fact: AttentionFact) -> bool:
    """Of the problem's head dims and mask, at lengths within an octave."""
    return of_head_dim(problem, fact) and fact.causal == problem.causal and octaves(problem, fact) <= OCTAVE


def of_head_dim(problem: AttentionProblem, fact: AttentionFact) -> bool:
    same = (fact.head_dim, fact.head_dim_v or fact.head_dim) == (problem.head_dim, problem.head_dim_v)
    return same and bool(fact.seqlen)


def nearest(problem: AttentionProblem, boards: tuple[str, ...]) -> Iterator[AttentionFact]:
    """Of each peer the nearest length; of equals one whose board is named, then the fastest."""
    for name in PEERS:
        of_shape = [fact for fact in shaped(boards) if fact.kernel == name and alike(problem, fact)]
        if of_shape:
            yield min(of_shape, key=lambda fact: (octaves(problem, fact), INFERRED in fact.flags, -(fact.tflops or 0)))


def headlines(boards: tuple[str, ...]) -> Iterator[AttentionFact]:
    """Of each peer the fastest figure that tells no shape."""
    for name in PEERS:
        found = [fact for fact in forwards(boards) if fact.kernel == name and not (fact.head_dim or fact.seqlen)]
        if found:
            yield max(found, key=lambda fact: fact.tflops or 0)


def other_boards(profile: Profile) -> tuple[str, ...]:
    """Boards of the same compute capability that are none of the profile's kind."""
    kind, tables = kind_of_profile(profile), load()
    own = tables.gpu(kind.boards[0]) if kind else None
    if kind is None or own is None:
        return ()
    same = (gpu.name for gpu in tables.gpus if gpu.compute_capability == own.compute_capability)
    return tuple(name for name in same if name not in kind.boards)
