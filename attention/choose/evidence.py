"""What timings have to say before a kernel of ours is picked: on a GPU that both were timed, on a CPU who won."""

from collections.abc import Sequence

from attention.choose.calibration import Duel, lead_near
from attention.choose.candidates import Candidate
from attention.choose.corrections import Corrections
from attention.problem import AttentionProblem
from attention.variant import Config, Variant, every_shipped
from microbench.machine.arch import Arch

LEAST_LEAD = 1.02  # that says something: less lies between two runs of one machine


def never_won(duels: Sequence[Duel]) -> bool:
    """True where our kernel won none of these duels on a CPU, so that it serves no problem there: see borne_out."""
    return bool(duels) and not any(_won(each.lead) for each in duels)


def _won(lead: float) -> bool:
    return lead >= LEAST_LEAD


def never_timed(
    problem: AttentionProblem, arch: Arch, candidates: list[tuple[Variant, Config]], efficiencies: Corrections
) -> str | None:
    """Why torch's kernel goes before ours on a GPU: nobody has timed both there. None where it need not, or cannot.

    Any of torch's fused kernels is one: the only one that takes masks is in no timing, and is the slowest of them.
    """
    ours = {variant.path: variant for variant, _ in candidates if variant.builds}
    if not ours or not any(variant.owner == "torch" and variant.fused for variant, _ in candidates):
        return None
    torchs = (each for each in every_shipped() if each.owner == "torch" and each.fused and arch.name in each.archs)
    if any(map(efficiencies.timed, ours.values())) and any(map(efficiencies.timed, torchs)):
        return None
    return (
        f"smscope's kernels have not been timed beside torch's on a GPU of {arch.name}, so torch's go first; "
        "`smscope bench-attention --peers` times them, and SMSCOPE_UNMEASURED=1 picks ours anyway"
    )


def borne_out(
    pick: Candidate,
    ordered: tuple[Candidate, ...],
    problem: AttentionProblem,
    variants: tuple[Variant, ...],
    duels: Sequence[Duel],
) -> tuple[Candidate, str | None]:
    """Torch's kernel for ours, and why, where ours has not won every duel that was fought near the problem."""
    rival = next((each for each in ordered if each.owner == "torch" and each.prediction is not None), None)
    if pick.owner == "torch" or rival is None:
        return pick, None
    ours = next(variant for variant in variants if variant.path == pick.variant)
    lead = lead_near(ours, problem, duels)
    if lead is None:
        return rival, (
            f"{pick.variant} is predicted to be faster, and too few timings on this CPU confirm it; "
            "`smscope bench-attention` adds some"
        )
    if _won(lead):
        return pick, None
    return rival, (
        f"{pick.variant} is predicted to be faster, and on this CPU, near this problem, it was timed at {lead:.2f} of "
        "the speed of torch's"
    )
