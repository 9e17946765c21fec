"""Our kernels on a GPU that nobody measured here, by published constants: what displaces no kernel of torch's.

It orders our own configurations, one of which is picked where a caller asks for ours all the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from attention.choose.candidates import Candidate, legal
from attention.choose.constant_used import ConstantUsed
from attention.choose.foreseen import Foreseen, foreseen, order
from attention.choose.published.pair import PairBeside, pair_beside
from attention.choose.published.speed import PublishedSpeed, speed
from attention.choose.published.table import TheirChoice, their_choice
from attention.choose.published.torchs import BesideTorch, beside_torch
from attention.problem import AttentionProblem
from attention.variant import Variant, by_path, shipped
from microbench.machine.arch import by_name
from microbench.results.profile import Profile

OURS = "smscope"


@dataclass(frozen=True)
class PublishedRanking:
    """Our configurations in their order, the constants behind the first, and its speed beside torch's.

    `modelled` are torch's kernels that the same constants predict; `without` says why ours have no configuration;
    `speed` is of the first, `theirs` what FlashAttention-4's own table says, and `pair` what is published of pairs.
    """

    kind: str
    board: str
    candidates: tuple[Foreseen, ...]
    constants: tuple[ConstantUsed, ...]
    beside_torch: BesideTorch
    modelled: tuple[Foreseen, ...] = ()
    without: str | None = None
    speed: PublishedSpeed | None = None
    theirs: TheirChoice | None = None
    pair: PairBeside | None = None


def ranking(
    profile: Profile,
    problem: AttentionProblem,
    torchs: Sequence[Candidate],
    *,
    passes: str = "forward",
    variants: tuple[Variant, ...] | None = None,
) -> PublishedRanking:
    """Rank by a published profile. `torchs` are torch's kernels that serve the problem, the preferred one first."""
    ours = tuple(each for each in (shipped(passes) if variants is None else variants) if each.owner == OURS)
    arch = by_name(profile.arch)
    allowed, refused = legal(problem, arch, ours)
    candidates = tuple(sorted((foreseen(profile, problem, *each) for each in allowed), key=order))
    without = None
    if not candidates:
        here = {each.path for each in ours if arch.name in each.archs}
        reasons = dict.fromkeys(f"{each.variant} {each.reason}" for each in refused if each.variant in here)
        without = "; ".join(reasons) or f"smscope has no {passes} kernel for {arch.name} yet"
    forward = passes == "forward" and problem.dtype in ("float16", "bfloat16") and not problem.features
    torchs_own = (foreseen(profile, problem, by_path(each.variant), each.config) for each in torchs)
    best = candidates[0] if candidates else None
    terms = best.known.terms if best is not None and best.known is not None else ()
    predicted = speed(profile, problem, best) if best is not None and forward else None
    low_share = predicted.band.low if predicted is not None and predicted.band is not None else None
    of_best = (best.variant, best.config, best.prediction) if best else None
    return PublishedRanking(
        profile.gpu,
        profile.name,
        candidates,
        tuple(_used(profile, name) for name in dict.fromkeys(name for term in terms for name in term.constants)),
        beside_torch(profile, problem, of_best, torchs, low_share),
        tuple(each for each in torchs_own if each.prediction is not None),
        without,
        predicted,
        their_choice(profile, problem) if candidates and forward else None,
        pair_beside(profile, problem, candidates) if forward else None,
    )


def _used(profile: Profile, name: str) -> ConstantUsed:
    constant = profile[name]
    return ConstantUsed.of(constant, f"{constant.label}, {', '.join(constant.sources or ())}: {constant.basis}")
