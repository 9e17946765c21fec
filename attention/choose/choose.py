"""Legal -> predicted -> sorted, and a tie band: which kernel, with which configuration, and why.

The same profile, problem and timings give the same Choice in every process: nothing is raced, nothing is random.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter

from attention.choose.calibration import Duel, lead_near
from attention.choose.corrections import Corrections
from attention.choose.model import HOST, Prediction, Unpredicted, predict
from attention.choose.nearest import nearest
from attention.errors import ProblemError, UnsupportedError
from attention.forwarded import Wanted
from attention.problem import AttentionProblem
from attention.variant import Config, Owner, Variant, every_shipped, shipped
from microbench.machine.arch import Arch, by_name
from microbench.results.profile import Profile

# Predictions this close are equal: a profile measured again moves by less than this, and must not move the pick.
TIE_BAND = 0.02
UNPROVEN = "has not been run on a GPU that it is written for; SMSCOPE_UNMEASURED=1 picks it all the same"


@dataclass(frozen=True)
class Candidate:
    """One legal configuration; `prediction` is None where the profile does not suffice, and `unpredicted` says why.

    `doubtful` is the constant that it would have to be predicted by, where that one is in doubt.
    """

    variant: str  # its folder under kernels/
    owner: Owner
    config: Config
    prediction: Prediction | None
    unpredicted: str | None = None
    doubtful: str | None = None


@dataclass(frozen=True)
class Refusal:
    """A variant, or some of its configurations, that cannot serve, and the reason."""

    variant: str
    config: Config | None
    reason: str


@dataclass(frozen=True)
class Choice:
    """The pick, everything it beat (best first), and everything that could not take part.

    `tied` are the candidates inside the tie band of the fastest prediction. `fallback` says why no tuned kernel serves.
    """

    problem: AttentionProblem
    gpu: str
    arch: str
    pick: Candidate
    tied: tuple[Candidate, ...]
    candidates: tuple[Candidate, ...]
    refused: tuple[Refusal, ...]
    fallback: str | None = None
    nearest: str | None = None  # the changes with which a tuned kernel would serve, where few will do
    mistrust: str | None = None  # why a kernel of ours that is predicted to be faster is not picked
    passes: str = "forward"

    @property
    def mistrusted(self) -> tuple[Candidate, ...]:
        """The candidates of ours that timings do not bear out: predicted to be faster than the pick, or to tie."""
        if self.mistrust is None:
            return ()
        faster = self.candidates[: self.candidates.index(self.pick)]
        return tuple(each for each in self.candidates if each.owner == "smscope" and each in (*faster, *self.tied))

    def to_json(self, indent: int | None = None) -> str:
        """The whole choice as JSON."""
        return CHOICE.dump_json(self, indent=indent).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> "Choice":
        """A stored choice, validated."""
        return CHOICE.validate_json(text)


CHOICE: TypeAdapter[Choice] = TypeAdapter(Choice)


def choose(
    profile: Profile,
    problem: AttentionProblem,
    *,
    passes: str = "forward",
    only: str | None = None,
    variants: tuple[Variant, ...] | None = None,
    withheld: tuple[Refusal, ...] = (),
    efficiencies: Corrections | None = None,
    unmeasured: bool = False,
    duels: Sequence[Duel] | None = None,
) -> Choice:
    """Pick a kernel for one pass of one problem on the machine of `profile`.

    withheld        variants that this call, or this process, leaves out
    only            'smscope' or 'torch' leaves the other's variants out; a variant's name leaves all others out
    efficiencies    what timings on this kind of machine showed; None judges by the constants of the profile alone
    unmeasured      take a GPU kernel of ours before torch's where `efficiencies` hold no timing of it, and one that no
                    GPU of its architectures has run
    duels           on a CPU those of our kernel and torch's: ours is picked only where it won near the problem; None
                    leaves it to the model
    Raises UnsupportedError where nothing can serve, with every reason.
    """
    variants = shipped(passes) if variants is None else variants
    if not variants:
        passes_known = ", ".join(dict.fromkeys(variant.passes for variant in every_shipped()))
        raise ProblemError(f"passes={passes!r} names no pass that has a kernel; use one of {passes_known}.")
    arch = by_name(profile.arch)
    if only and not any(_named(variant, only) for variant in variants):
        names = ", ".join(dict.fromkeys(variant.name for variant in variants))
        raise ProblemError(f"only={only!r} names no kernel; use smscope, torch, or one of {names}.")
    tuned = _tuned(variants)
    if efficiencies is not None and not (unmeasured or only):
        withheld = (*withheld, *(Refusal(each.path, None, UNPROVEN) for each in tuned if each.unproven))
        tuned = tuple(each for each in tuned if not each.unproven)
    candidates, refused = legal(problem, arch, variants, only, withheld)
    if not candidates:
        here = {variant.path for variant in variants if arch.name in variant.archs and _named(variant, only)}
        reasons = "; ".join(f"{each.variant} {each.reason}" for each in refused if each.variant in here)
        wanted = f" under only={only!r}" if only else ""
        hint = nearest(problem, arch, tuned) if only == "smscope" else None
        raise UnsupportedError(
            f"No kernel on {profile.gpu} serves {problem}{wanted}: {reasons or f'there is none for {arch.name} yet'}"
            f"{f'; a tuned kernel would serve the same call {hint}' if hint else ''}."
        )
    ordered = predicted(profile, problem, candidates, efficiencies or Corrections())
    behind = None
    if efficiencies is not None and not (unmeasured or only):
        behind = _never_timed(problem, arch, candidates, efficiencies)
    able = tuple(each for each in ordered if behind is None or _fused_of_torch(each, variants))
    tied = unjudged(able) or ties(able)
    pick = min(tied, key=_preference)
    mistrust = None
    if arch.name == HOST and duels is not None:
        pick, mistrust = _borne_out(pick, ordered, problem, variants, duels)
    served = bool(only) or any(_is_of(candidate, tuned) for candidate in able)
    fallback = None if served else behind or _why_fallback(refused, arch, tuned)
    hint = None if served or behind else nearest(problem, arch, tuned)
    return Choice(problem, profile.gpu, profile.arch, pick, tied, ordered, refused, fallback, hint, mistrust, passes)


def legal(
    problem: AttentionProblem,
    arch: Arch,
    variants: tuple[Variant, ...],
    only: str | None = None,
    withheld: tuple[Refusal, ...] = (),
) -> tuple[list[tuple[Variant, Config]], tuple[Refusal, ...]]:
    """Every (variant, configuration) that can serve, and every refusal with its reason."""
    allowed: list[tuple[Variant, Config]] = []
    refused: list[Refusal] = []
    left_out = {each.variant: each.reason for each in withheld}
    for variant in variants:
        reason = _outside(variant, arch, only) or left_out.get(variant.path) or variant.refusal(problem, arch)
        if reason:
            refused.append(Refusal(variant.path, None, reason))
            continue
        for config in variant.configs():
            against = variant.illegal(problem, config, arch) if variant.illegal else None
            if against:
                refused.append(Refusal(variant.path, config, against))
            else:
                allowed.append((variant, config))
    return allowed, tuple(refused)


def predicted(
    profile: Profile,
    problem: AttentionProblem,
    candidates: list[tuple[Variant, Config]],
    efficiencies: Corrections,
) -> tuple[Candidate, ...]:
    """Candidates with their predictions, fastest first; those without one last, in the order of their rank."""
    judged: list[tuple[tuple[float, float, str, tuple[int, ...]], Candidate]] = []
    for variant, config in candidates:
        sizes = tuple(value for _, value in config.values)
        try:
            timed = efficiencies.nearest(variant, config, problem)
            prediction = predict(profile, problem, variant, config, timed)
            judged.append(
                (
                    (prediction.seconds, 0, variant.path, sizes),
                    Candidate(variant.path, variant.owner, config, prediction),
                )
            )
        except Unpredicted as reason:
            candidate = Candidate(variant.path, variant.owner, config, None, str(reason), reason.doubtful)
            judged.append(((float("inf"), variant.rank, variant.path, sizes), candidate))
    return tuple(candidate for _, candidate in sorted(judged, key=lambda pair: pair[0]))


def ties(ordered: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """The candidates whose predictions lie within TIE_BAND of the fastest; the first alone where none is predicted."""
    fastest = ordered[0].prediction
    if fastest is None:
        return ordered[:1]
    limit = fastest.seconds * (1 + TIE_BAND)
    return tuple(each for each in ordered if each.prediction is not None and each.prediction.seconds <= limit)


def _preference(candidate: Candidate) -> tuple[int, bool, float, str, tuple[int, ...]]:
    """Among equals what was timed near the problem goes first, the fastest of it; then what was timed at all.

    Of others our own goes before torch's, and what relies least on overlap to hide its work.
    """
    sizes = tuple(size for _, size in candidate.config.values)
    found = candidate.prediction
    if found is not None and found.efficiency.near:
        return 0, False, found.seconds, candidate.variant, sizes
    timed = found is not None and found.efficiency.timings > 0
    work = found.unhidden_seconds if found else 0.0
    return 1 if timed else 2, candidate.owner != "smscope", work, candidate.variant, sizes


def _never_timed(
    problem: AttentionProblem, arch: Arch, candidates: list[tuple[Variant, Config]], efficiencies: Corrections
) -> str | None:
    """Why torch's kernel goes before ours on a GPU: nobody has timed both there. None where it need not, or cannot."""
    ours = {variant.path: variant for variant, _ in candidates if variant.builds}
    torchs = {variant.path: variant for variant, _ in candidates if variant.owner == "torch" and variant.fused}
    if not ours or not torchs:
        return None
    if any(map(efficiencies.timed, ours.values())) and any(map(efficiencies.timed, torchs.values())):
        return None
    return (
        f"smscope's kernels have not been timed beside torch's on a GPU of {arch.name}, so torch's go first; "
        "`smscope bench-attention --peers` times them, and SMSCOPE_UNMEASURED=1 picks ours anyway"
    )


def _tuned(variants: tuple[Variant, ...]) -> tuple[Variant, ...]:
    """The kernels without which a call falls back: ours, and of a pass for which there are none every fused one."""
    ours = tuple(variant for variant in variants if variant.owner == "smscope")
    return ours or tuple(variant for variant in variants if variant.fused)


def _is_of(candidate: Candidate, variants: tuple[Variant, ...]) -> bool:
    return any(each.path == candidate.variant for each in variants)


def _fused_of_torch(candidate: Candidate, variants: tuple[Variant, ...]) -> bool:
    return candidate.owner == "torch" and any(each.path == candidate.variant and each.fused for each in variants)


def withheld_from(wanted: Wanted, passes: str, arch: str) -> tuple[Refusal, ...]:
    """The variants of a pass on an architecture that this process leaves out for such a call, by torch's switches."""
    here = (variant for variant in shipped(passes) if arch in variant.archs)
    return tuple(Refusal(each.path, None, reason) for each in here if (reason := each.withheld(wanted)))


def unjudged(ordered: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """Torch's first kernel alone, where constants in doubt leave none of torch's predicted; else none.

    Ours would win such a race for want of a rival, and the constant in doubt would have chosen it.
    """
    torchs = [each for each in ordered if each.owner == "torch"]
    doubted = [each for each in torchs if each.doubtful]
    return () if any(each.prediction for each in torchs) else tuple(doubted[:1])


def never_won(duels: Sequence[Duel]) -> bool:
    """True where our kernel won none of these duels on a CPU, so that it serves no problem there: see _borne_out."""
    return bool(duels) and not any(_won(each.lead) for each in duels)


def _won(lead: float) -> bool:
    return lead >= 1 + TIE_BAND


def _borne_out(
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


def _outside(variant: Variant, arch: Arch, only: str | None) -> str | None:
    if arch.name not in variant.archs:
        return f"runs on {', '.join(variant.archs)}, not on {arch.name}"
    return None if _named(variant, only) else f"left out by only={only!r}"


def _named(variant: Variant, only: str | None) -> bool:
    return not only or only in (variant.owner, variant.name, variant.path)


def _why_fallback(refused: tuple[Refusal, ...], arch: Arch, tuned: tuple[Variant, ...]) -> str:
    here = {variant.path: variant for variant in tuned if arch.name in variant.archs}
    if not here:
        return f"there is no tuned kernel for {arch.name} yet"
    whole = (each for each in refused if each.variant in here and each.config is None)
    said = {f"{here[each.variant].name} {each.reason}" for each in whole}
    return "; ".join(sorted(said)) or "no configuration of a tuned kernel is legal"
