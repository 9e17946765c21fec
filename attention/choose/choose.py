"""Legal -> predicted -> sorted, and a tie band: which kernel, with which configuration, and why.

The same profile, problem and timings give the same Choice in every process: nothing is raced, nothing is random.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from attention.choose.calibration import Duel
from attention.choose.candidates import (
    Candidate,
    Refusal,
    Refusals,
    leading,
    legal,
    named,
    preference,
    rather_ours,
    ties,
    unjudged,
)
from attention.choose.corrections import Corrections
from attention.choose.evidence import borne_out, never_timed
from attention.choose.foreseen import reordered
from attention.choose.lengths import presumed
from attention.choose.nearest import nearest
from attention.choose.rates import HOST
from attention.choose.tuning import Tuning, ranked
from attention.errors import ProblemError, UnsupportedError
from attention.problem import AttentionProblem
from attention.variant import Variant, every_shipped, shipped
from microbench.machine.arch import Arch, by_name
from microbench.results.profile import Profile

UNPROVEN = "has not been run on a GPU that it is written for; SMSCOPE_UNMEASURED=1 picks it all the same"


@dataclass(frozen=True)
class Choice:
    """The pick, everything it beat (best first), and everything that could not take part.

    `tied` are the candidates inside the tie band of the fastest prediction. `fallback` says why no tuned kernel serves.
    Candidates that cannot win are predicted when somebody reads `candidates`: see `of_leading`.
    """

    problem: AttentionProblem
    gpu: str
    arch: str
    pick: Candidate
    tied: tuple[Candidate, ...]
    candidates: tuple[Candidate, ...]
    refused: Refusals
    fallback: str | None = None
    nearest: str | None = None  # the changes with which a tuned kernel would serve, where few will do
    mistrust: str | None = None  # why a kernel of ours that is predicted to be faster is not picked
    passes: str = "forward"
    tuning: Tuning | None = None  # what `smscope tune` timed of this class, where that decided

    @classmethod
    def of_leading(cls, every: Callable[[], tuple[Candidate, ...]], **others: Any) -> "Choice":
        """One that asks `every` for its candidates when somebody reads them: a call needs no more than the pick."""
        found = cls.__new__(cls)
        found.__dict__.update(others, _every=every)
        return found

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """The candidates, where nobody has read them yet: other fields are always there."""
            every = self.__dict__.get("_every")
            if every is None or name != "candidates":
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            found = self.__dict__["candidates"] = every()
            return found

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: how to predict is no data."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

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
    published: Profile | None = None,
    tuning: Tuning | None = None,
) -> Choice:
    """Pick a kernel for one pass of one problem on the machine of `profile`.

    withheld        variants that this call, or this process, leaves out
    only            'smscope' or 'torch' leaves the other's variants out; a variant's name leaves all others out
    efficiencies    what timings on this kind of machine showed; None judges by the constants of the profile alone
    unmeasured      take a GPU kernel of ours before torch's where `efficiencies` hold no timing of it, and one that no
                    GPU of its architectures has run
    duels           on a CPU those of our kernel and torch's: ours is picked only where it won near the problem; None
                    leaves it to the model
    published       constants of a GPU that nobody measured: they order our own configurations, and nothing else
    tuning          what was timed of this very class on this very machine: its fastest candidate is picked, ours or
                    torch's, whatever is predicted
    Raises UnsupportedError where nothing can serve, with every reason.
    """
    variants = shipped(passes) if variants is None else variants
    if not variants:
        passes_known = ", ".join(dict.fromkeys(variant.passes for variant in every_shipped()))
        raise ProblemError(f"passes={passes!r} names no pass that has a kernel; use one of {passes_known}.")
    arch = by_name(profile.arch)
    if only and not any(named(variant, only) for variant in variants):
        names = ", ".join(dict.fromkeys(variant.name for variant in variants))
        raise ProblemError(f"only={only!r} names no kernel; use smscope, torch, or one of {names}.")
    tuned = _tuned(variants)
    if efficiencies is not None and not (unmeasured or only):
        ran = tuning.kernels if tuning is not None else frozenset()
        withheld = (*withheld, *(Refusal(each.path, None, UNPROVEN) for each in tuned if _waits(each, ran)))
        tuned = tuple(each for each in tuned if not _waits(each, ran))
    candidates, refused = legal(problem, arch, variants, only, withheld)
    if not candidates:
        here = {variant.path for variant in variants if arch.name in variant.archs and named(variant, only)}
        reasons = "; ".join(f"{each.variant} {each.reason}" for each in refused if each.variant in here)
        wanted = f" under only={only!r}" if only else ""
        hint = nearest(problem, arch, tuned) if only == "smscope" else None
        raise UnsupportedError(
            f"No kernel on {profile.gpu} serves {problem}{wanted}: {reasons or f'there is none for {arch.name} yet'}"
            f"{f'; a tuned kernel would serve the same call {hint}' if hint else ''}."
        )
    ordered, every = leading(profile, problem, candidates, efficiencies or Corrections(), presumed(problem))
    if tuning is not None or published is not None:  # they may turn on any, by other figures
        ordered = every()
    if published is not None:
        ordered = reordered(ordered, problem, published)
    fastest = next(iter(ranked(tuning, ordered)), None) if tuning is not None else None
    behind = None
    if fastest is None and efficiencies is not None and not (unmeasured or only):
        behind = never_timed(problem, arch, candidates, efficiencies)
    able = tuple(each for each in ordered if behind is None or _fused_of_torch(each, variants))
    tied = (
        (fastest,) if fastest is not None else unjudged(able) or ties(able if arch.name == HOST else rather_ours(able))
    )
    pick = min(tied, key=preference)
    mistrust = None
    if arch.name == HOST and duels is not None:
        pick, mistrust = borne_out(pick, ordered, problem, variants, duels)
    sought = {each.path for each in tuned}
    served = bool(only) or (behind is None and any(variant.path in sought for variant, _ in candidates))
    fallback = None if served else behind or _why_fallback(refused, arch, tuned)
    hint = None if served or behind else nearest(problem, arch, tuned)
    by = tuning if fastest is not None else None
    return Choice.of_leading(
        every if tuning is None and published is None else lambda: ordered,
        problem=problem,
        gpu=profile.gpu,
        arch=profile.arch,
        pick=pick,
        tied=tied,
        refused=refused,
        fallback=fallback,
        nearest=hint,
        mistrust=mistrust,
        passes=passes,
        tuning=by,
    )


def _waits(variant: Variant, ran: frozenset[str]) -> bool:
    """Whether no GPU of its architectures has run it, this one included."""
    return variant.unproven and variant.path not in ran


def _tuned(variants: tuple[Variant, ...]) -> tuple[Variant, ...]:
    """The kernels without which a call falls back: ours, and of a pass for which there are none every fused one."""
    ours = tuple(variant for variant in variants if variant.owner == "smscope")
    return ours or tuple(variant for variant in variants if variant.fused)


def _fused_of_torch(candidate: Candidate, variants: tuple[Variant, ...]) -> bool:
    return candidate.owner == "torch" and any(each.path == candidate.variant and each.fused for each in variants)


def _why_fallback(refused: tuple[Refusal, ...], arch: Arch, tuned: tuple[Variant, ...]) -> str:
    here = {variant.path: variant for variant in tuned if arch.name in variant.archs}
    if not here:
        written = sorted((each.variant, each.reason) for each in refused if _unproven_on(each, arch))
        none = f"there is no tuned kernel for {arch.name} "
        return none + (f"that a GPU has run: {' '.join(written[0])}" if written else "yet")
    whole = (each for each in refused if each.variant in here and each.config is None)
    said = {f"{here[each.variant].name} {each.reason}" for each in whole}
    return "; ".join(sorted(said)) or "no configuration of a tuned kernel is legal"


def _unproven_on(refusal: Refusal, arch: Arch) -> bool:
    """Whether it is of a whole kernel that is written for the architecture, and that no GPU of it has run."""
    written = (each for each in every_shipped() if each.unproven and arch.name in each.archs)
    return refusal.config is None and any(each.path == refusal.variant for each in written)
